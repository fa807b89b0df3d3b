/** The inputs that all parts of the kubelet program share: invocation and settings. */
import type { NodeSettings } from '#kubelet/kubelet-options.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'
import type { Registry } from '#lib/metrics/metrics.ts'
import type { Invocation } from '#lib/program.ts'

import type { LoadedKubelet } from './configuration.ts'
import type { KubeletSettings } from './flags.ts'

export interface KubeletProgram extends Invocation<FlagGroups>, LoadedKubelet {
  readonly settings: KubeletSettings
  /** The name of the node. */
  readonly node: string
  readonly closing: AsyncDisposableStack
  readonly cloud: NodeSettings['cloud']
  /** The registry of `/metrics`. */
  readonly registry: Registry
}
