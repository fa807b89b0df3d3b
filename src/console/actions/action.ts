/** An action on an object: a row of the table in actions.ts. */
import type { KubeObject } from '#meta/object.ts'

import type { KindAddress } from '../api/kinds.ts'

/** A request to the API server of the cluster. */
export interface ActionRequest {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
  /** Of the body. Default: JSON. */
  readonly type?: string
}

export interface Target {
  readonly kind: KindAddress
  readonly object: KubeObject
}

export interface Surroundings {
  readonly nowMs: number
  /** Letters that make a generated name unique. */
  readonly suffix: string
}

/** A right that the action needs. */
export interface Right {
  readonly verb: string
  readonly subresource?: string
  /** Default: the kind of the object. */
  readonly kind?: KindAddress
}

/** Actions without a dialog of this kind run at once. */
export type DialogName = 'scale' | 'labels' | 'delete' | 'undo' | 'drain' | 'debug-pod' | 'debug-node' | 'confirm'

export interface Action {
  readonly name: string
  readonly title: string
  /** `Deployment.apps`; undefined: every kind. */
  readonly kinds?: readonly string[]
  readonly rights: readonly Right[]
  /** Whether the action makes sense in the state of the object. */
  readonly fits?: (object: KubeObject) => boolean
  readonly isDangerous?: boolean
  readonly dialog?: DialogName
  /** The text of the dialog `confirm`. */
  readonly warning?: string
  /** The request of an action that needs no other input. */
  readonly plan?: (target: Target, surroundings: Surroundings) => ActionRequest
  /** The result in words, for readers of the screen too. */
  readonly done: string
}
