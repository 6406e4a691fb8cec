//! Fuzz target: traces.

use super::*;

#[path = "../../../../fuzz/mutate.rs"]
pub(crate) mod mutate;

const SEEDS: [&[u8]; 3] = [
    b"round,client,failure\n1,1,0.5\n1,2,0\n1,3,1\n2,1,0.25\n2,2,0\n2,3,1\n",
    b"round,client,failure\r\n0,1,0.5\r\n0,2, 1e-3\r\n0,3,\"1\"\r\n",
    b"round , client , failure\n1,1,1\n1,2,1\n1,3,1\n",
];

#[test]
fn traces() {
    mutate::fuzz(&SEEDS, &["round", "client", "failure", "\n", ",", "\"", "1,1,0.5\n"], |bytes| {
        if let Ok((first, failures)) = parse(bytes, 3) {
            assert!(first <= 1 && !failures.is_empty() && failures.len().is_multiple_of(3));
            assert!(failures.iter().all(|failure| (0.0..=1.0).contains(failure)));
        }
    });
}
