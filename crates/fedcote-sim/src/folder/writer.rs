//! Writes the folder of a run that is under way, whoever computes its rounds.
//!
//! A lock keeps a second writer away. On a network file system it may not; then two commands may compute the same run
//! at the same time. As both come to the same bits, that must cost time only: each writes files of its own and puts
//! them in place as a whole, and whoever finds the run finished by the other is content with that.

use std::path::Path;

use super::{Checkpoint, Clients, Finished, Line, MetricsWriter, RunFolder};
use crate::Error;
use crate::play::Ending;
use crate::saved::Saved;
use crate::stretch::{Rest, Stretch};

/// The folder of a run that is under way.
pub(crate) struct RunWriter<'a> {
    folder: &'a RunFolder,
    metrics: MetricsWriter,
    /// All but the state.
    at: Checkpoint<'static>,
}

impl<'a> RunWriter<'a> {
    /// Begins the run, or goes on from its checkpoint, whose state is returned.
    pub(crate) fn open(folder: &'a RunFolder) -> Result<(Self, Option<Saved<'static>>), Error> {
        folder.sweep()?;
        let (metrics, resumed) = folder.resume()?;
        let begun = resumed.is_some();
        let mut at = resumed.unwrap_or_default();
        let saved = std::mem::take(&mut at.saved);
        Ok((Self { folder, metrics, at }, begun.then_some(saved)))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Rounds written.
    pub(crate) fn round(&self) -> u32 {
        self.at.round
    }

    /// Seconds spent.
    pub(crate) fn seconds(&self) -> f64 {
        self.at.seconds
    }

    pub(crate) fn set_seconds(&mut self, seconds: f64) {
        self.at.seconds = seconds;
    }

    /// Remembers that rounds were computed with this instruction set.
    pub(crate) fn computed_with(&mut self, instructions: &str) {
        if !self.at.instructions.contains(instructions) {
            self.at.instructions.insert(instructions.to_owned());
        }
    }

    /// Who takes part; contents of `clients.json`.
    pub(crate) fn clients(&mut self, contents: &str) -> Result<(), Error> {
        let path = self.folder().join(Clients::FILE);
        fedcote_support::write(&path, contents.as_bytes())?;
        self.at.seals.seal(self.folder.path(), Clients::FILE).map_err(Error::io(&path))
    }

    /// What a round came to.
    pub(crate) fn add(&mut self, line: &Line) -> Result<(), Error> {
        if let Line::Round(report) = line {
            self.at.round = report.round;
        }
        self.metrics.add(line)
    }

    /// Saves where the run stands; how it ended, if another command has finished it meanwhile.
    pub(crate) fn checkpoint(&mut self, saved: Saved) -> Result<Option<Finished>, Error> {
        if let Some(finished) = self.finished() {
            return Ok(Some(finished));
        }
        self.metrics.sync()?;
        let mut checkpoint = Checkpoint { saved, ..self.at.clone() };
        checkpoint.seals.set("metrics.jsonl", self.metrics.checksum());
        match self.folder.checkpoint(&checkpoint) {
            Ok(()) => Ok(None),
            // Whoever finishes a run removes its checkpoint.
            Err(error) => self.finished().map(Some).ok_or(error),
        }
    }

    /// How the run ended, if its folder is whole.
    fn finished(&self) -> Option<Finished> {
        self.folder.finished().ok().flatten().map(|(finished, _)| finished)
    }

    /// Writes the model and marks the run as finished.
    pub(crate) fn finish(&mut self, ending: Ending, model: &[u8]) -> Result<Finished, Error> {
        match self.try_finish(ending, model) {
            Ok(()) => {
                let (finished, _) = self.folder.finished()?.expect("it has just been written");
                Ok(finished)
            }
            Err(error) => self.finished().ok_or(error),
        }
    }

    fn try_finish(&mut self, ending: Ending, model: &[u8]) -> Result<(), Error> {
        self.metrics.settle()?;
        let path = self.folder().join("model.safetensors");
        fedcote_support::write(&path, model)?;
        let Checkpoint { seconds, seals, instructions, .. } = &mut self.at;
        seals.seal(self.folder.path(), "model.safetensors").map_err(Error::io(&path))?;
        let Ending { rounds, diverged_at, classes, server_memory } = ending;
        let finished = Finished {
            rounds,
            diverged_at,
            seconds: *seconds,
            classes,
            server_memory,
            instructions: instructions.clone(),
            metrics_checksum: self.metrics.checksum(),
            checksums: seals.clone(),
        };
        self.folder.finish(finished)
    }

    /// Writes rounds that were computed elsewhere; how the run ended, if it did.
    pub(crate) fn apply(&mut self, stretch: &Stretch) -> Result<Option<Finished>, Error> {
        if let Some(contents) = &stretch.clients {
            self.clients(contents)?;
        }
        for line in &stretch.lines {
            self.metrics.add_text(line.clone())?;
        }
        self.at.round = stretch.round;
        self.at.seconds += stretch.seconds;
        self.computed_with(&stretch.instructions);
        match &stretch.rest {
            Rest::State(state) => self.checkpoint(state.saved()?.1),
            Rest::Ended(ending, model) => self.finish(*ending, model).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::{fs, thread};

    use super::*;
    use crate::play::Play;
    use crate::{Classification, Scenario, World};

    const TEXT: &str = "rounds = 9\nclients = 4\nselected = 2\ncheckpoint_every = 2\nevaluate_every = 3\n\
                        [data]\nset = \"synthetic\"\nsamples = 60\n[model]\nkind = \"softmax\"\n\
                        [network]\nkind = \"fixed\"\nfailure = [0.1, 0.2, 0.3, 0.4]\n";

    fn world() -> Arc<World> {
        let scenario = Arc::new(Scenario::parse("test", TEXT, &[], ".".as_ref()).unwrap());
        let task = Arc::new(Classification::load(&scenario, 1).unwrap());
        Arc::new(World::new(scenario, task, 1).unwrap())
    }

    /// A command without a lock.
    struct Command<'a> {
        writer: RunWriter<'a>,
        play: Play,
    }

    impl<'a> Command<'a> {
        fn begin(folder: &'a RunFolder, world: &Arc<World>) -> Result<Option<Self>, Error> {
            // A folder that another command has half finished is looked at again, as a user would.
            if matches!(folder.finished(), Ok(Some(_))) {
                return Ok(None);
            }
            let (writer, saved) = RunWriter::open(folder)?;
            let mut play = Play::new(Arc::clone(world), "fedavg").unwrap();
            if let Some(mut saved) = saved {
                play.restore(writer.round(), &mut saved).unwrap();
            }
            Ok(Some(Self { writer, play }))
        }

        /// One round; true when the run has ended.
        fn step(&mut self) -> Result<bool, Error> {
            let Self { writer, play } = self;
            let line = play.step()?;
            if play.round() == 1 {
                writer.clients(&play.clients().expect("few clients"))?;
            }
            writer.add(&line)?;
            if play.has_ended() {
                return writer.finish(play.ending(), &play.model()?).map(|_| true);
            }
            match play.round().is_multiple_of(2) {
                true => writer.checkpoint(play.save()).map(|finished| finished.is_some()),
                false => Ok(false),
            }
        }
    }

    /// What must not depend on who wrote it.
    fn results(folder: &RunFolder) -> Vec<Vec<u8>> {
        let (mut finished, _) = folder.finished().unwrap().expect("it has ended");
        finished.seconds = 0.0;
        finished.checksums.take(Finished::FILE);
        let names = ["metrics.jsonl", "model.safetensors", "clients.json"];
        let mut files: Vec<Vec<u8>> =
            names.iter().map(|name| fs::read(folder.path().join(name)).unwrap()).collect();
        files.push(serde_json::to_vec(&finished).unwrap());
        files
    }

    fn folder(out: PathBuf) -> RunFolder {
        let scenario = Scenario::parse("test", TEXT, &[], ".".as_ref()).unwrap();
        RunFolder::open(&out, &scenario, "fedavg", 1).unwrap()
    }

    /// Where locks do not work, lines of two commands used to be mixed in one `metrics.jsonl`, which no command could
    /// read afterwards.
    #[test]
    fn two_commands_on_one_run_never_mix_a_file() {
        let (out, world) = (tempfile::tempdir().unwrap(), world());
        let alone = folder(out.path().join("alone"));
        let mut command = Command::begin(&alone, &world).unwrap().unwrap();
        while !command.step().unwrap() {}
        let expected = results(&alone);
        // Every order of events in which the second command begins after so many rounds of the first, makes so many
        // rounds between two of the first, and one of them is killed on the way, or none.
        for (late, pace, killed) in
            (0..9).flat_map(|late| [1, 2, 5].map(|pace| (late, pace))).flat_map(|(late, pace)| {
                [None, Some((0, 4)), Some((1, 4)), Some((1, 7))].map(|killed| (late, pace, killed))
            })
        {
            let what = format!("late {late}, pace {pace}, killed {killed:?}");
            let run = folder(out.path().join(&what));
            let mut commands = [Command::begin(&run, &world).unwrap(), None];
            for turn in 0..40 {
                if turn == late {
                    commands[1] = Command::begin(&run, &world).unwrap();
                }
                for (at, rounds) in [(0, 1), (1, pace)] {
                    for _ in 0..rounds {
                        let Some(command) = &mut commands[at] else { break };
                        let dies = killed == Some((at, command.play.round()));
                        if dies || command.step().unwrap() {
                            commands[at] = None;
                        }
                    }
                }
            }
            // Whoever survived has finished the run, or another command continues it.
            if let Some(mut command) = Command::begin(&run, &world).unwrap() {
                while !command.step().unwrap() {}
            }
            assert_eq!(results(&run), expected, "{what}");
        }
    }

    /// The same in whatever order the system executes them.
    #[test]
    fn two_commands_at_the_same_time_never_mix_a_file() {
        let (out, world) = (tempfile::tempdir().unwrap(), world());
        let alone = folder(out.path().join("alone"));
        let mut command = Command::begin(&alone, &world).unwrap().unwrap();
        while !command.step().unwrap() {}
        let expected = results(&alone);
        for number in 0..20 {
            let run = folder(out.path().join(number.to_string()));
            let perform = || -> Result<(), Error> {
                let Some(mut command) = Command::begin(&run, &world)? else { return Ok(()) };
                while !command.step()? {}
                Ok(())
            };
            thread::scope(|scope| {
                let others = [scope.spawn(perform), scope.spawn(perform)];
                for other in others {
                    // A command may see a file vanish that the other has removed, and say so.
                    let _ = other.join().expect("it did not panic");
                }
            });
            perform().unwrap();
            assert_eq!(results(&run), expected, "{number}");
        }
    }
}
