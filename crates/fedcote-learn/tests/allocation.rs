//! A local step allocates nothing: counted by an allocator of our own, in a program of its own.

// A global allocator cannot be written without `unsafe`; this one only counts and hands on.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use fedcote::random::{Key, Purpose};
use fedcote_learn::{
    Augmentation,
    data::{DataSpec, SetKind, load},
    models::{ModelKind, ModelSpec, build},
    train::{LocalSettings, Trainer, local},
};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test only: another one in this program would be counted too.
#[test]
fn a_local_step_allocates_nothing() {
    let cases = [
        (ModelKind::Mlp, Some(vec![30]), Some(784)),
        (ModelKind::Mlp, Some(vec![64, 32]), Some(784)),
        (ModelKind::Softmax, None, Some(784)),
        (ModelKind::Resnet20, None, Some(12)),
        // Without a number of features: digits, shifted and mirrored.
        (ModelKind::Cnn, Some(vec![20]), None),
    ];
    let samples: Vec<u32> = (0..2_000).collect();
    for (kind, hidden, features) in cases {
        let spec = match features {
            None => DataSpec::default(),
            features => DataSpec {
                set: SetKind::Synthetic,
                samples: Some(2_000),
                features,
                ..DataSpec::default()
            },
        };
        let augmentation = match features {
            None => Augmentation { crop: 2, flip: true, together: false },
            _ => Augmentation::default(),
        };
        let data = load(&spec, Path::new(".")).unwrap();
        let spec = ModelSpec { kind, hidden, ..ModelSpec::default() };
        let model = build(&spec, data.train.shape, 10).unwrap();
        let mut weights = model.initialise(Key::new(1, Purpose::Model));
        let mut trainer = Trainer::new(&*model, 128).augmented(augmentation);
        let mut count = |steps| {
            let settings = LocalSettings { steps, batch: 128, rate: 0.05 };
            let key = Key::new(1, Purpose::Batch);
            let before = ALLOCATIONS.load(Ordering::SeqCst);
            local(
                &*model,
                &mut weights,
                &data.train,
                &samples,
                &settings,
                key,
                &mut |_, _| (),
                &mut trainer,
            );
            ALLOCATIONS.load(Ordering::SeqCst) - before
        };
        // The first call may fill buffers that stay.
        count(1);
        assert_eq!(count(1), 0);
        assert_eq!(count(10), 0);
    }
    assert!(ALLOCATIONS.load(Ordering::SeqCst) > 10, "the allocator counts");
}
