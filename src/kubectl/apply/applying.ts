/** The inputs and results that client-side and server-side apply share. */
import type { Invocation } from '../command.ts'
import type { DryRun } from '../flag-sets.ts'
import type { AnyObject } from '../session/rest.ts'

export interface ApplySettings {
  readonly dryRun: DryRun
  readonly fieldValidation: string
  /** The propagation policy for deletions: how the garbage collector treats dependents. */
  readonly policy: string
  /** The field manager. */
  readonly manager: string
}

export interface ApplyResult {
  readonly object: AnyObject
  /** `created`, `configured`, `unchanged`, `serverside-applied`. */
  readonly operation: string
}

/** The members of an invocation that apply uses. */
export interface ApplyContext extends Pick<Invocation, 'session' | 'stderr' | 'clock' | 'signal'> {
  readonly flags: {
    readonly force: boolean
    readonly 'force-conflicts': boolean
    readonly 'grace-period': number
    readonly timeout: number
    readonly subresource: string
  }
}
