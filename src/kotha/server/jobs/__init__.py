"""Work that takes its time: a process of its own for each job, found again by whichever server looks next."""
