//! One run from its first round, or from its checkpoint, to its end, in its folder.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::Error;
use crate::comparison::{Control, Event, Listener};
use crate::context::Context;
use crate::folder::{Line, Lock, RunFolder, RunWriter};
use crate::plan::RunId;
use crate::play::Play;
use crate::saved::Saved;

/// One run on its way.
pub(crate) struct Runner<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) folder: &'a RunFolder,
    pub(crate) control: &'a Control<'a>,
    pub(crate) listener: &'a dyn Listener,
    /// Becomes true when another run fails.
    pub(crate) failed: &'a AtomicBool,
}

/// A run that one command at a time writes.
pub(crate) struct Begun<'a> {
    pub(crate) writer: RunWriter<'a>,
    _lock: Lock,
}

/// Begins a run, or goes on with it, and returns its state; nothing if it has ended.
pub(crate) fn begin<'a>(
    run: &RunId,
    folder: &'a RunFolder,
    listener: &dyn Listener,
) -> Result<Option<(Begun<'a>, Option<Saved<'static>>)>, Error> {
    let lock = Lock::take(folder.path())?;
    if let Some((finished, _)) = folder.finished()? {
        folder.tidy()?;
        listener.event(run, Event::Skipped(&finished));
        return Ok(None);
    }
    let (writer, saved) = RunWriter::open(folder)?;
    Ok(Some((Begun { writer, _lock: lock }, saved)))
}

impl Runner<'_> {
    fn stopping(&self) -> bool {
        self.control.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Plays the run to its end; false means that it was interrupted.
    pub(crate) fn play(&self, context: &Context) -> Result<bool, Error> {
        let every = context.scenario.general.checkpoint_every;
        if self.stopping() {
            return Ok(false);
        }
        let begun = begin(self.run, self.folder, self.listener)?;
        let Some((Begun { mut writer, _lock }, saved)) = begun else { return Ok(true) };
        let mut play = Play::new(context.world(self.run.seed)?, &self.run.scheme)?;
        if let Some(mut saved) = saved {
            play.restore(writer.round(), &mut saved).map_err(|reason| {
                let path = writer.folder();
                let remedy = format!("remove {} to run it again", path.display());
                Error::folder(path, format!("the checkpoint is damaged: {reason}; {remedy}"))
            })?;
        }
        self.listener.event(self.run, Event::Started { round: play.round() });
        writer.computed_with(play.instructions());
        let (begun, spent) = (Instant::now(), writer.seconds());
        while !play.has_ended() {
            let line = context.pool.install(|| play.step())?;
            if play.round() == 1 {
                if let Some(contents) = play.clients() {
                    writer.clients(&contents)?;
                }
                let warnings = play.warnings();
                if !warnings.is_empty() {
                    self.listener.event(self.run, Event::Warned(&warnings));
                }
            }
            writer.add(&line)?;
            if let Line::Round(report) = &line {
                self.listener.event(self.run, Event::Round(report));
            }
            let stop = self.stopping() && !play.has_ended();
            if stop || (play.round().is_multiple_of(every) && !play.has_ended()) {
                writer.set_seconds(spent + begun.elapsed().as_secs_f64());
                if let Some(finished) = writer.checkpoint(play.save())? {
                    self.listener.event(self.run, Event::Finished(&finished));
                    return Ok(true);
                }
            }
            if stop {
                self.listener.event(self.run, Event::Interrupted { round: play.round() });
                return Ok(false);
            }
        }
        writer.set_seconds(spent + begun.elapsed().as_secs_f64());
        let finished = writer.finish(play.ending(), &play.model()?)?;
        self.listener.event(self.run, Event::Finished(&finished));
        Ok(true)
    }
}
