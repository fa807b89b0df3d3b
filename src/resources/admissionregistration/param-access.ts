/**
 * Prevents users from reading objects through a policy without permission. The author of a policy must be allowed to
 * get all objects of its param kind, and the author of a binding its parameters.
 */
import type { ParamKind, ParamRef } from '#apis/admissionregistration/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Finish, Resource, WriteContext } from '#apiserver/registry/resource.ts'
import { type Access, type Authorizer, PRIVILEGED_GROUP, resourceAccess } from '#auth/authorizer.ts'
import type { User } from '#auth/user.ts'
import { compareText } from '#lib/go/text.ts'
import { type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

export interface ParamAccess {
  readonly ask: Authorizer['authorize']
  /** The resource of the kind; undefined if there is none. */
  readonly resourceOf: (kind: GroupVersionKind) => string | undefined
}

type Allocate<T extends KubeObject> = NonNullable<Resource<T>['allocate']>

interface PolicyLike extends KubeObject {
  readonly spec: { readonly paramKind?: ParamKind }
}

/** The resource with the check; unchanged if authorization is off. */
export function guardParamKind<T extends PolicyLike>(
  resource: Resource<T>,
  access: ParamAccess | undefined,
): Resource<T> {
  if (access === undefined) return resource
  const allocate: Allocate<T> = async (next, old, context) => {
    const { paramKind } = next.spec
    if (paramKind === undefined || semanticEqual(paramKind, old?.spec.paramKind)) return nothingReserved
    return refuseUnless(resource, [next, old], context, {
      field: fieldPath('spec.paramKind'),
      why: await kindRefusal(access, context.user, paramKind),
    })
  }
  return { ...resource, allocate }
}

async function kindRefusal(
  { ask, resourceOf }: ParamAccess,
  user: User,
  paramKind: ParamKind,
): Promise<string | undefined> {
  const { kind = '', apiVersion = '' } = paramKind
  const { allowed, error } = await ask(
    user,
    resourceAccess({ verb: 'get', name: '*', namespace: '*', ...resourceOfParams(paramKind, resourceOf).resource }),
  )
  if (allowed) return undefined
  const text = `user ${userText(user)} must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`
  return error ?? text
}

interface BindingLike extends KubeObject {
  readonly spec: { readonly policyName?: string; readonly paramRef?: ParamRef }
}

export interface BindingTerms {
  /** The policies of the bindings. */
  readonly policies: Kind<PolicyLike>
  /** Upstream's text for one of the two kinds has verb and user in the wrong order. */
  readonly refusal: (user: string, verb: string) => string
}

/** The same for the parameters of a binding. */
export function guardParamRef<T extends BindingLike>(
  resource: Resource<T>,
  access: ParamAccess | undefined,
  terms: BindingTerms,
): Resource<T> {
  if (access === undefined) return resource
  const allocate: Allocate<T> = async (next, old, context) => {
    const { paramRef, policyName } = next.spec
    const isSame = semanticEqual(paramRef, old?.spec.paramRef) && policyName === old?.spec.policyName
    if (paramRef === undefined || isSame) return nothingReserved
    return refuseUnless(resource, [next, old], context, {
      field: fieldPath('spec.paramRef'),
      why: await refRefusal(access, terms, next, context),
    })
  }
  return { ...resource, allocate }
}

async function refRefusal(
  { ask, resourceOf }: ParamAccess,
  { policies, refusal }: BindingTerms,
  { spec: { policyName = '', paramRef = {} } }: BindingLike,
  { user, objects }: WriteContext,
): Promise<string | undefined> {
  const policy = await objects.get(policies, '', policyName)
  const { resource, problem } = resourceOfParams(policy?.spec.paramKind, resourceOf)
  const { name = '', namespace = '' } = paramRef
  const verb = name === '' ? 'list' : 'get'
  const { allowed, error } = await ask(user, resourceAccess({ verb, name, namespace, ...resource }))
  if (allowed) return undefined
  if (error !== undefined) return `failed to authorize request: ${error}`
  const who = userText(user)
  const unknown = policy === undefined ? `get policy ${policyName}` : problem
  if (unknown === undefined) return refusal(who, verb)
  const everything = `user ${who} does not have "${verb}" permission for all groups, versions and resources`
  return `unable to ${unknown} to determine minimum required permissions and ${everything}`
}

interface ParamResource {
  readonly resource: Pick<Access, 'group' | 'version' | 'resource'>
  /** The failed operation on the kind. */
  readonly problem?: string
}

/** An unresolved kind requires permission for everything. */
function resourceOfParams(paramKind: ParamKind | undefined, resourceOf: ParamAccess['resourceOf']): ParamResource {
  const everything = { group: '*', version: '*', resource: '*' }
  if (paramKind === undefined) return { resource: everything }
  const { apiVersion = '', kind = '' } = paramKind
  if (apiVersion.split('/').length > 2)
    return { resource: everything, problem: `parse paramKind &{${apiVersion} ${kind}}` }
  const { group, version } = parseApiVersion(apiVersion)
  const resource = resourceOf({ group, version, kind })
  if (resource !== undefined) return { resource: { group, version, resource } }
  return { resource: { group, version, resource: '*' }, problem: `resolve paramKind &{${apiVersion} ${kind}}` }
}

const nothingReserved: Finish = () => Promise.resolve()

interface Refusal {
  readonly field: FieldPath
  readonly why: string | undefined
}

/** Members of `system:masters` may do everything. An invalid object gets only its validation errors. */
function refuseUnless<T extends KubeObject>(
  { kind, validate, validateUpdate }: Resource<T>,
  [next, old]: readonly [T, T | undefined],
  context: WriteContext,
  { field, why }: Refusal,
): Finish {
  if (why === undefined || context.user.groups.includes(PRIVILEGED_GROUP)) return nothingReserved
  const faults = old === undefined ? validate?.(next, context) : validateUpdate?.(next, old, context)
  if ((faults ?? []).length > 0) return nothingReserved
  throw invalidError({ group: kind.group, kind: kind.kind }, next.metadata.name ?? '', [field.forbidden(why)])
}

/** Go's form of upstream's struct. */
function userText({ name, uid, groups, extra }: User): string {
  const extras = Object.entries(extra)
    .sort(([one], [other]) => compareText(one, other))
    .map(([key, values]) => `${key}:[${values.join(' ')}]`)
  return `&{${name} ${uid} [${groups.join(' ')}] map[${extras.join(' ')}]}`
}
