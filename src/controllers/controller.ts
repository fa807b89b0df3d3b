/** Types of kube-controller-manager's controllers: those of src/reconcile, with the manager's flags as settings. */
import type { KubeObject } from '#meta/object.ts'
import * as reconcile from '#reconcile/controller.ts'

import type { ControllerSettings } from './settings.ts'

export type Controller = reconcile.Controller<ControllerSettings>
export type ControllerContext = reconcile.ControllerContext<ControllerSettings>
export type Watch<T extends KubeObject = KubeObject> = reconcile.Watch<T, ControllerSettings>

export function defineController(controller: Controller): Controller {
  return controller
}

/** State that lasts for one run of a controller, created on first use. */
export function perRun<T>(make: (context: ControllerContext) => T): (context: ControllerContext) => T {
  return reconcile.perRun(make)
}
