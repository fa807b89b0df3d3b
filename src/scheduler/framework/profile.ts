/** A scheduling profile: the plugins of each extension point, in order. */
import type { Plugin } from './framework.ts'

export interface EnabledPlugin {
  readonly name: string
  readonly plugin: Plugin
}

export interface ScorePlugin extends EnabledPlugin {
  readonly weight: number
}

export interface Profile {
  /** `spec.schedulerName` of its pods. */
  readonly name: string
  /** Every enabled plugin once. */
  readonly plugins: readonly EnabledPlugin[]
  readonly preEnqueue: readonly EnabledPlugin[]
  readonly queueSort: EnabledPlugin
  readonly preFilter: readonly EnabledPlugin[]
  readonly filter: readonly EnabledPlugin[]
  readonly postFilter: readonly EnabledPlugin[]
  readonly score: readonly ScorePlugin[]
  readonly reserve: readonly EnabledPlugin[]
  readonly permit: readonly EnabledPlugin[]
  readonly preBind: readonly EnabledPlugin[]
  readonly bind: readonly EnabledPlugin[]
  readonly postBind: readonly EnabledPlugin[]
  /** The percentage of nodes to search; 0: adaptive to the cluster size. */
  readonly percentageOfNodesToScore: number
}
