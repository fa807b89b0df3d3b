/** Command lines that change objects: what our kubectl prints, and what upstream's printed (`answers`). */
import { ABOUT_WORKLOADS } from './answers.ts'
import { replay } from './replay.suite.ts'

await replay(({ mode, name }) => mode !== 'reads' && !ABOUT_WORKLOADS.test(name))
