/** Links from roles, bindings and service accounts to the page "Who may do what". */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { Link } from '../routing/router.tsx'
import { type Question, questionsOf } from './questions.ts'

export interface RightsLinksProps {
  readonly cluster: string
  readonly object: KubeObject
}

export function RightsLinks({ cluster, object }: RightsLinksProps): VNode | null {
  const questions = questionsOf(object)
  if (questions.length === 0) return null
  return (
    <section class="box">
      <h2>Who may do what</h2>
      <ul class="name-list">
        {questions.map((question) => (
          <li key={question.text}>
            <QuestionLink cluster={cluster} question={question} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function QuestionLink({ cluster, question }: { readonly cluster: string; readonly question: Question }): VNode {
  return (
    <Link to={{ page: 'cluster-view', cluster, view: 'rights' }} query={question.query}>
      <bdi>{question.text}</bdi>
    </Link>
  )
}
