//! What there is to choose from.

use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }
    };
}

choice! {
    /// Whom to ask.
    SelectionKind {
        /// Draws in proportion to the weights p (FedAvg).
        Weights,
        /// The candidates with the highest loss.
        PowerOfChoice,
        /// The clients whose last model is farthest from the global one.
        Newt,
        /// Groups that together have the global label mix, in turn.
        Gs,
        /// Draws that minimise the variance of unbiased aggregation.
        TfAggregation,
        /// Draws that undo the distortion by failures.
        Fedcote,
    }
}
choice! {
    /// What a client does.
    LocalKind {
        /// Plain mini-batch SGD.
        Sgd,
        /// With a proximal term towards the global model.
        Prox,
        /// With control variates.
        Scaffold,
    }
}
choice! {
    /// What becomes of what arrived.
    AggregationKind {
        /// The mean of what arrived, each copy counting once.
        Mean,
        /// The mean weighted by copies times p.
        WeightedMean,
        /// Weights that make the expectation right, not normalised.
        TfAggregation,
        /// Updates divided by their number of steps.
        Nova,
        /// An adaptive step on the mean update.
        Yogi,
        /// The mean of everyone's latest update (MIFA).
        Memory,
        /// The mean update corrected by everyone's latest one (FedVARP).
        VarianceReduced,
        /// The mean weighted by observed participation (FedAU).
        Fedau,
        /// Weights that match this round's labels to the global mix.
        LabelMatched,
    }
}
choice! {
    /// Which failures a scheme meets.
    FailureKind {
        /// Those of the network.
        Network,
        /// None at all.
        None,
        /// Everyone fails with the mean probability of the network.
        Equalised,
    }
}
choice! {
    /// How selection probabilities are solved for.
    SolverKind {
        /// Convex target and inversion.
        Exact,
        /// The paper's projected gradient descent.
        Gradient,
    }
}
choice! {
    /// What selection probabilities are for.
    AimKind {
        /// That the aggregate of what arrives has the labels of all data.
        Appearance,
        /// That what a server remembers of each client is fresh; its weights see to the labels.
        Freshness,
    }
}
choice! {
    /// How SCAFFOLD's control variate is scaled.
    ControlKind {
        /// By the number of local steps, as in the original.
        Original,
        /// By the number of selected clients, as printed in the paper.
        Printed,
    }
}
