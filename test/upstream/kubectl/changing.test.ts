/** Tests that command lines that change objects print what upstream's kubectl printed (`answers`). */
import { ABOUT_WORKLOADS } from './answers.ts'
import { replay } from './replay.suite.ts'

await replay(({ mode, name }) => mode !== 'reads' && !ABOUT_WORKLOADS.test(name))
