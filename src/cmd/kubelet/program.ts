/** What the parts of the program kubelet have in common: how it was called, and what it was told. */
import type { NodeSettings } from '#kubelet/kubelet-options.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { Registry } from '#lib/metrics.ts'
import type { Invocation } from '#lib/program.ts'

import type { LoadedKubelet } from './configuration.ts'
import type { KubeletSettings } from './flags.ts'

export interface KubeletProgram extends Invocation<FlagGroups>, LoadedKubelet {
  readonly settings: KubeletSettings
  /** The name of the node. */
  readonly node: string
  readonly closing: AsyncDisposableStack
  readonly cloud: NodeSettings['cloud']
  /** What `/metrics` shows. */
  readonly registry: Registry
}
