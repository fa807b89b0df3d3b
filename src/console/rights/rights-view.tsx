/** The page "Who may do what" of a cluster. Its three parts ask in three directions. */
import type { VNode } from 'preact'

import type { ClusterViewProps } from '../parts/view-props.ts'
import { Link, location } from '../routing/router.tsx'
import { OwnRules } from './own-rules.tsx'
import { SubjectRights } from './subject-rights.tsx'
import { WhoMay } from './who-may.tsx'

const PARTS: readonly (readonly [name: string, title: string])[] = [
  ['', 'Who may …'],
  ['subject', 'What may a user …'],
  ['me', 'What may I …'],
]

export function RightsView({ cluster }: ClusterViewProps): VNode {
  const { part = '', ns = '' } = location.value.query
  return (
    <>
      <nav class="tabs" aria-label="Questions">
        {PARTS.map(([name, title]) => (
          <Link
            key={name}
            to={{ page: 'cluster-view', cluster, view: 'rights' }}
            query={{ part: name, ns }}
            current={name === part}
          >
            {title}
          </Link>
        ))}
      </nav>
      {part === 'subject' && <SubjectRights cluster={cluster} />}
      {part === 'me' && <OwnRules cluster={cluster} namespace={ns} />}
      {part !== 'subject' && part !== 'me' && <WhoMay cluster={cluster} />}
    </>
  )
}
