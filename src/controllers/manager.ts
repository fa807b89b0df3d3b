/** Runs controllers with the flags of kube-controller-manager. */
import * as reconcile from '#reconcile/manager.ts'

import { controllerSettings, type ControllerSettings, workersOf } from './settings.ts'

export interface ManagerOptions extends Omit<reconcile.ManagerOptions<ControllerSettings>, 'settings' | 'workersOf'> {
  /** Default: upstream's defaults. */
  readonly settings?: ControllerSettings
}

/** Runs until the signal is aborted: see `reconcile/manager.ts`. */
export function runControllers(options: ManagerOptions, signal: AbortSignal): Promise<void> {
  return reconcile.runControllers({ ...options, settings: options.settings ?? controllerSettings(), workersOf }, signal)
}
