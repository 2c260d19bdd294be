"""The op pages: HLO ops, op profile, framework ops, roofline."""
