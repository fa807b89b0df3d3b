/** The interface of a describer, which prints one kind for `kubectl describe`. */
import type { KubeObject } from '#meta/object.ts'

import { eventsOf } from './events.ts'
import type { RelatedObjects } from './related.ts'
import { type Part, render } from './rows.ts'

type Describer<T> = (object: T, around: RelatedObjects) => readonly Part[] | Promise<readonly Part[]>

/** A describer and the API version of the objects it reads. */
export interface DescribedKind {
  readonly resource: string
  /** The description of an object; ends with a line break. */
  readonly describe: (object: KubeObject, around: RelatedObjects) => Promise<string>
}

/** By kind and group: `Pod`, `Deployment.apps`. */
export type DescribedKinds = Readonly<Record<string, DescribedKind>>

/** The section of events follows the rows. */
export function describes<T extends KubeObject>(
  resource: string,
  rows: Describer<T>,
  events: Describer<T> = eventsOf,
): DescribedKind {
  return {
    resource,
    async describe(object, around) {
      const parts = await rows(object as T, around)
      const after = around.showsEvents ? await events(object as T, around) : []
      return render([...parts, ...after])
    },
  }
}

/** For kinds that upstream shows without events. */
export function describesWithoutEvents<T extends KubeObject>(resource: string, rows: Describer<T>): DescribedKind {
  return describes<T>(resource, rows, () => [])
}
