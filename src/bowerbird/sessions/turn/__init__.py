"""One turn, from the input that was accepted to the state in which it ends.

Read in this order:

    accept (inbox/accept) → begin_on_accept | begin_transaction → driver → attempt → prepare (recovery) →
    agent.turn_loop → per step: step_records + step_side_effects (one commit) → finish (freeze, land by
    policy) → end_transaction

Must not be here: what people send (`inbox`), who drives (`dispatch`), what is owed to doors (`delivery`).
"""
