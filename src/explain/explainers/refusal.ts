/** Explains why a user may not do something: asks the server, and names the nearest permissions. */
import { SelfSubjectReviews, type SelfSubjectReview } from '#apis/authentication/v1.ts'
import { type SubjectAccessReview, SubjectAccessReviews } from '#apis/authorization/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import { type Access, PRIVILEGED_GROUP, resourceAccess } from '#auth/authorizer.ts'
import type { User } from '#auth/user.ts'
import type { KubeObject } from '#meta/object.ts'

import {
  type AnyBinding,
  indexOf,
  type Miss,
  nearMisses,
  placeText,
  type RbacObjects,
  resourceText,
  unboundRoles,
} from '../access/near-misses.ts'
import { type Finding, hiddenStep, notKnown, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'

export interface AccessQuestion {
  readonly access: Readonly<Record<'verb' | 'group' | 'resource' | 'subresource' | 'namespace' | 'name', string>>
  /** Absent: the asker. */
  readonly user?: { readonly name: string; readonly groups: readonly string[] }
}

const SELF_REVIEW = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: {} }
const MAX_MISSES = 4
const MAX_ROLES = 3

export async function whyRefused(
  { access: attributes, user: given }: AccessQuestion,
  reader: Reader,
): Promise<Finding> {
  const access = resourceAccess(attributes)
  const user = given === undefined ? await asker(reader) : withKnownGroups(given)
  if (user === undefined) return notKnown('the server does not say who you are', [hiddenStep()])
  const what = `${access.verb} ${resourceText(access)}${access.name === '' ? '' : ` ${access.name}`}${placeText(access.namespace)}`
  const review = await reviewOf(user, access, given === undefined, reader)
  if (review === undefined)
    return notKnown(`you may not ask the server whether ${user.name} may ${what}`, [hiddenStep()])
  const { allowed, denied = false, reason = '' } = review
  const answer = answerStep(
    `${allowed ? 'allows' : 'refuses'} ${user.name} to ${what}${reason === '' ? '' : `: ${reason}`}`,
  )
  if (allowed)
    return { verdict: `${user.name} may ${what}${reason === '' ? '' : `: ${reason}`}`, steps: [answer], wouldHelp: [] }
  if (denied)
    return {
      verdict: `${user.name} may not ${what} because an authorizer denies it: ${reason}`,
      steps: [answer],
      wouldHelp: [],
    }
  const objects = await rbacObjects(access.namespace, reader)
  const verdict = `${user.name} may not ${what} because no role that is bound to ${user.name} allows it`
  if ('hidden' in objects) {
    const hidden = hiddenStep(
      `are ${objects.hidden.join(', ')} that you may not list, so the nearest permissions are not known`,
    )
    return { verdict: `${user.name} may not ${what}: no authorizer allows it`, steps: [answer, hidden], wouldHelp: [] }
  }
  if (indexOf(objects).authorize(user, access).allowed || user.groups.includes(PRIVILEGED_GROUP))
    return notKnown(`the server refuses ${user.name} to ${what}, although RBAC allows it by the objects now`, [answer])
  const misses = nearMisses(objects, user, access).slice(0, MAX_MISSES)
  return {
    verdict,
    steps: [answer, ...misses.map((miss) => missStep(user, miss, reader))],
    wouldHelp: helpOf(objects, user, access),
  }
}

async function asker(reader: Reader): Promise<User | undefined> {
  const review = await reader.review(SelfSubjectReviews, SELF_REVIEW as SelfSubjectReview)
  if (review === HIDDEN || review === undefined) return undefined
  const { username = '', uid = '', groups = [] } = review.status.userInfo ?? {}
  return { name: username, uid, groups, extra: {} }
}

/** The groups that the server adds to every user and to service accounts. */
function withKnownGroups({ name, groups }: { readonly name: string; readonly groups: readonly string[] }): User {
  const [, kind, namespace = ''] = name.split(':')
  const isAccount = name.startsWith('system:serviceaccount:') && kind === 'serviceaccount'
  const own = isAccount ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`] : []
  return { name, uid: '', groups: [...groups, ...own, 'system:authenticated'], extra: {} }
}

interface ReviewAnswer {
  readonly allowed: boolean
  readonly denied?: boolean
  readonly reason?: string
}

/** Users may ask about themselves; about others they need the permission to create SubjectAccessReviews. */
async function reviewOf(
  user: User,
  access: Access,
  isSelf: boolean,
  reader: Reader,
): Promise<ReviewAnswer | undefined> {
  const { verb, group, resource, subresource, name, namespace } = access
  const all = { verb, group, resource, subresource, name, namespace }
  const resourceAttributes = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  const apiVersion = 'authorization.k8s.io/v1'
  const self = { kind: 'SelfSubjectAccessReview', apiVersion, metadata: {}, spec: { resourceAttributes } }
  const spec = { resourceAttributes, user: user.name, groups: user.groups }
  const other = { kind: 'SubjectAccessReview', apiVersion, metadata: {}, spec }
  const review = isSelf
    ? await reader.review(SELF_ACCESS, self as unknown as SubjectAccessReview)
    : await reader.review(SubjectAccessReviews, other as unknown as SubjectAccessReview)
  return review === HIDDEN ? undefined : review?.status
}

/** Answers as the review about another user. */
const SELF_ACCESS: Kind<SubjectAccessReview> = {
  ...SubjectAccessReviews,
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
}

function answerStep(did: string): Step {
  return { actor: 'kube-apiserver', did, object: '', because: [], evidence: [], certainty: 'reported' }
}

/** Without bindings of other namespaces if the asker may only list those of this one. */
async function rbacObjects(
  namespace: string,
  reader: Reader,
): Promise<RbacObjects | { readonly hidden: readonly string[] }> {
  const [clusterRoles, clusterBindings] = await Promise.all([
    reader.list(ClusterRoles),
    reader.list(ClusterRoleBindings),
  ])
  const [roles, bindings] = await Promise.all([
    listIn(Roles, namespace, reader),
    listIn(RoleBindings, namespace, reader),
  ])
  const lists = { clusterroles: clusterRoles, clusterrolebindings: clusterBindings, roles, rolebindings: bindings }
  const hidden = Object.entries(lists).flatMap(([name, list]) => (list === HIDDEN ? [name] : []))
  if (clusterRoles === HIDDEN || clusterBindings === HIDDEN || roles === HIDDEN || bindings === HIDDEN)
    return { hidden }
  return { clusterRoles, clusterBindings, roles, bindings }
}

async function listIn<T extends KubeObject>(
  kind: Kind<T>,
  namespace: string,
  reader: Reader,
): Promise<readonly T[] | typeof HIDDEN> {
  const all = await reader.list(kind)
  return all === HIDDEN && namespace !== '' ? reader.list(kind, { namespace }) : all
}

function missStep(user: User, { text, binding }: Miss, reader: Reader): Step {
  const evidence =
    binding === undefined
      ? []
      : binding.metadata.namespace === undefined
        ? reader.cite<AnyBinding>(ClusterRoleBindings, binding, 'subjects', 'roleRef')
        : reader.cite<AnyBinding>(RoleBindings, binding, 'subjects', 'roleRef')
  return { actor: user.name, did: text, object: '', because: [], evidence, certainty: 'recomputed' }
}

function helpOf(objects: RbacObjects, user: User, access: Access): string[] {
  const subject = subjectFlag(user)
  return unboundRoles(objects, access)
    .slice(0, MAX_ROLES)
    .map(({ metadata: { name = '', namespace } }) => {
      const role = namespace === undefined ? `--clusterrole=${name}` : `--role=${name}`
      return access.namespace === ''
        ? `kubectl create clusterrolebinding NAME ${role} ${subject}`
        : `kubectl create rolebinding NAME -n ${access.namespace} ${role} ${subject}`
    })
}

function subjectFlag({ name }: User): string {
  const [, , namespace, account] = name.startsWith('system:serviceaccount:') ? name.split(':') : []
  return account === undefined ? `--user=${name}` : `--serviceaccount=${namespace}:${account}`
}
