/** The questions about rights that the page of a role, a binding or a service account leads to. */
import type { PolicyRule, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { holderText, nameText } from './holder-text.ts'
import { type Holder, holderOf } from './rbac.ts'

export interface Question {
  readonly text: string
  /** Of the address of the page. */
  readonly query: Readonly<Record<string, string>>
}

const GROUP = 'rbac.authorization.k8s.io/'
/** An object can have thousands of subjects or rules. */
const MAX_QUESTIONS = 10

export function questionsOf(object: KubeObject): readonly Question[] {
  const { apiVersion = '', kind = '', metadata } = object
  const { name = '', namespace = '' } = metadata
  if (apiVersion === 'v1' && kind === 'ServiceAccount') return [aboutHolder({ kind, name, namespace })]
  if (!apiVersion.startsWith(GROUP)) return []
  if (kind.endsWith('Binding')) {
    const subjects: readonly Subject[] = (object as Partial<RoleBinding>).subjects ?? []
    const holders = subjects.flatMap((subject) => holderOf(subject, namespace) ?? [])
    return holders.slice(0, MAX_QUESTIONS).map((holder) => aboutHolder(holder))
  }
  const { rules } = object as { readonly rules?: readonly PolicyRule[] | null }
  return (rules ?? []).slice(0, MAX_QUESTIONS).flatMap((rule) => aboutRule(rule, namespace))
}

function aboutHolder(holder: Holder): Question {
  return {
    text: `What may ${holder.kind} ${nameText(holder)} do?`,
    query: { part: 'subject', who: holderText(holder) },
  }
}

/** About its first verb and resource. */
function aboutRule({ verbs, apiGroups, resources, nonResourceURLs }: PolicyRule, ns: string): readonly Question[] {
  const [verb] = verbs
  const [resource = nonResourceURLs?.[0]] = resources ?? []
  if (verb === undefined || resource === undefined) return []
  const of = resource.startsWith('/') ? resource : withGroup(resource, apiGroups?.[0] ?? '')
  return [{ text: `Who may ${verb} ${of}?`, query: { verb, of, ns } }]
}

/** `deployments/scale` of `apps` is `deployments.apps/scale`. */
function withGroup(resource: string, group: string): string {
  if (group === '') return resource
  const [plural = '', ...subresource] = resource.split('/')
  return [`${plural}.${group}`, ...subresource].join('/')
}
