/** The props of the forms of actions. */
import type { Target } from './action.ts'

export interface ActionFormProps extends Target {
  readonly cluster: string
  readonly close: () => void
  /** Called when the action is done. */
  readonly done: () => void
}
