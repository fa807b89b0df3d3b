/** The conditions of an object. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { conditionsOf } from '../objects/conditions.ts'
import { SectionView } from './section-view.tsx'
import { since, table } from './section.ts'

export function ConditionsView({ cluster, object }: { readonly cluster: string; readonly object: KubeObject }): VNode {
  const rows = conditionsOf(object).map(({ type, status, reason, message, lastTransitionTime, tone }) => [
    type,
    { text: status, tone },
    reason,
    message,
    since(lastTransitionTime === '' ? undefined : lastTransitionTime),
  ])
  return (
    <>
      {table('Conditions', ['Type', 'Status', 'Reason', 'Message', 'Since'], rows).map((section) => (
        <SectionView key={section.title} cluster={cluster} section={section} />
      ))}
    </>
  )
}
