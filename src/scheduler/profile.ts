/** A profile: which plugins have a say at which point of a decision, in order, for the pods that name it. */
import type { Plugin } from './framework.ts'

export interface Enabled {
  readonly name: string
  readonly plugin: Plugin
}

export interface Scoring extends Enabled {
  readonly weight: number
}

export interface Profile {
  /** What pods call it in `spec.schedulerName`. */
  readonly name: string
  /** Every plugin once, wherever it is enabled. */
  readonly plugins: readonly Enabled[]
  readonly preEnqueue: readonly Enabled[]
  readonly queueSort: Enabled
  readonly preFilter: readonly Enabled[]
  readonly filter: readonly Enabled[]
  readonly postFilter: readonly Enabled[]
  readonly score: readonly Scoring[]
  readonly reserve: readonly Enabled[]
  readonly permit: readonly Enabled[]
  readonly preBind: readonly Enabled[]
  readonly bind: readonly Enabled[]
  readonly postBind: readonly Enabled[]
  /** Of how many nodes in a hundred the best is chosen; 0: the more nodes, the fewer. */
  readonly percentageOfNodesToScore: number
}
