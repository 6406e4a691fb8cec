//! Differential privacy of the models of a run with respect to all updates of one client (`server.noise_multiplier`).
//!
//! A step of the server is η Σ γ_i u_i, with updates u_i no longer than the clip C and shares γ_i in which no update has a say: they follow from
//! who was drawn and who arrived. Taking all updates of a client for zero moves the step by η C max γ at most. Gaussian
//! noise of z times that in every coordinate makes a release γ_i/(z max γ)-Gaussian differentially private for client i, and
//! releases compose by squares (see [`gaussian_epsilon`]). No amplification by sampling is claimed, because draws are not uniform.
//!
//! Where one client has more than `max_share`, the whole step is shortened, noise included. That costs and gives nothing in
//! privacy, and keeps rounds in which hardly anybody arrived from being mostly noise.
//!
//! An update that is not finite counts as one of zero, since who takes part must not depend on updates. The noise follows from the seed like everything in a
//! simulation: it shows what privacy costs, and protects nobody from those who know the seed.

use fedcote::SettingError;
use fedcote::privacy::gaussian_epsilon;
use fedcote::random::Key;
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::local::LocalKind;
use crate::saved::Saved;
use crate::scenario::Server;
use crate::scheme::Scheme;
use crate::selection::SelectionKind;

/// δ where a scenario gives none.
const DELTA: f64 = 1e-5;

/// The noise on the steps of a run, and what it adds up to.
pub(crate) struct Privacy {
    /// η C, by which a share of 1 can move the model.
    reach: f64,
    noise_multiplier: f64,
    max_share: f64,
    delta: f64,
    /// Σ (γ_i / max γ)² over all releases, by client: z² times its μ².
    spent: Vec<f64>,
}

impl Privacy {
    /// What a scenario asks for; nothing without a noise multiplier.
    ///
    /// # Errors
    /// When what a client can do in this scheme has no bound.
    pub(crate) fn new(
        server: &Server,
        scheme: &Scheme,
        clients: usize,
        draws: u64,
    ) -> Result<Option<Self>, SettingError> {
        let (Some(noise_multiplier), Some(clip)) = (server.noise_multiplier, server.clip) else {
            return Ok(None);
        };
        let rate = bounded(scheme).map_err(|reason| {
            let reason = format!("not for scheme `{}`: {reason}", scheme.name);
            SettingError::new("server.noise_multiplier", reason)
        })?;
        Ok(Some(Self {
            reach: rate * clip,
            noise_multiplier,
            max_share: server.max_share.unwrap_or((2.0 / draws as f64).min(1.0)),
            delta: server.delta.unwrap_or(DELTA),
            spent: vec![0.0; clients],
        }))
    }

    /// Adds noise to the step from `before` to `global`, which these shares made; without shares nothing was released.
    pub(crate) fn release(
        &mut self,
        key: Key,
        shares: &[(u32, f64)],
        before: &[f32],
        global: &mut [f32],
    ) {
        let largest = shares.iter().fold(0.0f64, |largest, (_, share)| largest.max(*share));
        if largest <= 0.0 {
            return;
        }
        let deviation = self.noise_multiplier * self.reach * largest;
        let shorter = (self.max_share / largest).min(1.0);
        let mut stream = key.stream();
        for (value, before) in global.iter_mut().zip(before) {
            let noise: f64 = deviation * stream.sample::<f64, _>(StandardNormal);
            let before = f64::from(*before);
            *value = (before + shorter * (f64::from(*value) - before + noise)) as f32;
        }
        for &(client, share) in shares {
            self.spent[client as usize] += (share / largest).powi(2);
        }
    }

    /// ε of everything released so far, for the client that it is largest for.
    pub(crate) fn epsilon(&self) -> f64 {
        let most = self.spent.iter().fold(0.0f64, |most, spent| most.max(*spent));
        gaussian_epsilon(most.sqrt() / self.noise_multiplier, self.delta).unwrap_or(f64::INFINITY)
    }

    pub(crate) fn save(&self, saved: &mut Saved<'_>) {
        saved.put_value("privacy.spent", &self.spent);
    }

    pub(crate) fn restore(&mut self, saved: &Saved<'_>) -> Result<(), String> {
        let spent: Vec<f64> = saved.get_value("privacy.spent")?;
        if spent.len() != self.spent.len() {
            return Err("`privacy.spent` is for another number of clients".to_owned());
        }
        self.spent = spent;
        Ok(())
    }
}

/// The step size η of a scheme whose step is η times a sum of updates, with shares in which no update has a say; why not, otherwise.
fn bounded(scheme: &Scheme) -> Result<f64, String> {
    if scheme.python.is_some() {
        return Err("nothing bounds what a class of one's own does with an update".to_owned());
    }
    // All kinds by name: a new one must be thought of before it gets an ε.
    match scheme.local {
        LocalKind::Sgd | LocalKind::Prox(_) => {}
        LocalKind::Scaffold(_) => {
            return Err("control variates disclose updates without noise".to_owned());
        }
    }
    match scheme.selection {
        SelectionKind::PowerOfChoice(_)
        | SelectionKind::Newt(_)
        | SelectionKind::CaFed(_)
        | SelectionKind::Oort(_) => {
            let word = scheme.selection.word();
            return Err(format!(
                "selection \"{word}\" goes by losses or models of clients, without noise"
            ));
        }
        SelectionKind::Buffered(_) => {
            return Err(
                "in selection \"buffered\" one client may be in a step several times".to_owned()
            );
        }
        SelectionKind::Weights(_)
        | SelectionKind::Gs
        | SelectionKind::TfAggregation(_)
        | SelectionKind::Fedcote(_)
        | SelectionKind::Everyone
        | SelectionKind::F3ast(_) => {}
    }
    scheme.aggregation.weighted_sum().ok_or_else(|| {
        let word = scheme.aggregation.word();
        format!("aggregation \"{word}\" is no sum of updates with known shares, as \"mean\" and \"memory\" are")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::Schemes;
    use fedcote::random::Purpose;

    fn privacy(server: Server, scheme: &str) -> Result<Option<Privacy>, SettingError> {
        Privacy::new(&server, &Schemes::default().resolve(scheme).unwrap(), 3, 4)
    }

    fn server() -> Server {
        Server { clip: Some(0.5), noise_multiplier: Some(2.0), ..Server::default() }
    }

    #[test]
    fn the_noise_is_as_large_as_stated() {
        let size = 40_000;
        let key = Key::new(3, Purpose::Test);
        for (shares, shorter) in [(vec![(0, 0.3), (2, 0.4)], 1.0), (vec![(1, 1.0)], 0.5)] {
            let mut privacy = privacy(server(), "fedavg").unwrap().unwrap();
            // max_share is 2/4.
            let (before, mut global) = (vec![1.0; size], vec![2.0; size]);
            privacy.release(key, &shares, &before, &mut global);
            let largest = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
            let stated = shorter * 2.0 * 0.5 * largest;
            let steps: Vec<f64> = global.iter().map(|value| f64::from(value - 1.0)).collect();
            let mean = steps.iter().sum::<f64>() / size as f64;
            let variance = steps.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / size as f64;
            // Five standard errors of the mean and of the deviation.
            assert!((mean - shorter).abs() < 5.0 * stated / (size as f64).sqrt(), "{mean}");
            let error = (variance.sqrt() - stated).abs();
            assert!(error < 5.0 * stated / (2.0 * size as f64).sqrt(), "{variance} {stated}");
        }
    }

    #[test]
    fn what_is_spent_is_as_by_hand() {
        let mut privacy = privacy(server(), "fedavg").unwrap().unwrap();
        assert_eq!(privacy.epsilon(), 0.0);
        let mut release = |shares: &[(u32, f64)]| {
            privacy.release(Key::new(1, Purpose::Test), shares, &[0.0], &mut [0.0]);
        };
        for _ in 0..9 {
            release(&[(0, 0.2), (1, 0.1)]);
        }
        release(&[]);
        release(&[(2, 0.0)]);
        assert_eq!(privacy.spent, [9.0, 9.0 / 4.0, 0.0]);
        // μ = √9/2.
        assert_eq!(privacy.epsilon(), gaussian_epsilon(1.5, 1e-5).unwrap());
        let own = Server { delta: Some(1e-3), ..server() };
        let other = Privacy {
            spent: privacy.spent,
            ..super::tests::privacy(own, "fedavg").unwrap().unwrap()
        };
        assert_eq!(other.epsilon(), gaussian_epsilon(1.5, 1e-3).unwrap());
    }

    #[test]
    fn schemes_without_a_bound_are_refused_in_one_line() {
        let wrong = |scheme: &str| privacy(server(), scheme).err().unwrap().to_string();
        assert_eq!(
            wrong("scaffold"),
            "server.noise_multiplier: not for scheme `scaffold`: control variates disclose updates without noise"
        );
        assert!(
            wrong("oort").contains("selection \"oort\" goes by losses or models"),
            "{}",
            wrong("oort")
        );
        assert!(wrong("fedavg-krum").contains("aggregation \"krum\" is no sum of updates"));
        assert!(wrong("fedbuff").contains("several times"));
        for refused in [
            "newt",
            "power-of-choice",
            "ca-fed",
            "fedcote-control",
            "fedvarp",
            "fedyogi",
            "feddyn",
            "fedawe",
            "fedpbc",
            "fedavg-median",
            "tf-aggregation",
            "amplified-fedavg",
            "fedstale",
        ] {
            assert!(privacy(server(), refused).is_err(), "{refused}");
        }
        for bounded in [
            "fedavg",
            "fedcote",
            "fedcote-memory",
            "mifa",
            "fedprox",
            "fednova",
            "fedau",
            "fedavg-all",
            "fedavg-known",
            "f3ast",
            "gs",
            "fedcote-matched",
        ] {
            assert!(privacy(server(), bounded).unwrap().is_some(), "{bounded}");
        }
        assert!(privacy(Server::default(), "scaffold").unwrap().is_none());
    }
}
