"""Human evaluation: blind pairs of generated texts, ranking of the models, and agreement of the judges."""
