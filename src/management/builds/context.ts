/** The settings of the controller for built clusters, and names that it shares with the routes. */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { generateName } from '#meta/object.ts'
import type { ControllerContext } from '#reconcile/controller.ts'

import type { ManagementSettings } from '../clusters/cluster-status.ts'
import type { BuildSurroundings } from './engine.ts'
import type { BuildRunner } from './runner.ts'

export interface BuildServices {
  readonly around: BuildSurroundings
  readonly runner: BuildRunner
  /** Where agents connect. */
  readonly serverUrl: () => string
  /** PEM; undefined: a public authority. */
  readonly ca: () => string | undefined
}

/** The context of the controller. */
export type BuildContext = ControllerContext<ManagementSettings> & { readonly builds: BuildServices }

/** Keeps a deleted Cluster until it is removed from its machines. */
export const BUILD_FINALIZER = 'management.hyperkube.io/build'
/** On a Cluster: unreachable machines do not stop its removal. */
export const FORCE_ANNOTATION = 'management.hyperkube.io/force-removal'
/** On a Cluster: the User who changed its file, or who removes it. */
export const CHANGED_BY_ANNOTATION = 'management.hyperkube.io/changed-by'

/** Names sort by their time. */
export function operationName({ clock, random }: { readonly clock: Clock; readonly random: Random }): string {
  return generateName(`o-${clock.now().toString(36)}-`, random)
}
