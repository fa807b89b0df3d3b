/**
 * Nobody reads through a policy what they may not read: whoever names a kind of parameters must be able to get all objects
 * of it, and whoever binds a policy the parameters that the binding names.
 */
import type { ParamKind, ParamRef } from '#apis/admissionregistration/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Access, type Authorizer, PRIVILEGED_GROUP, resourceAccess } from '#apiserver/authorizers/authorizer.ts'
import type { Finish, Resource, User, WriteContext } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { forbidden } from '#meta/validation/field-error.ts'

export interface ParamAccess {
  readonly ask: Authorizer['authorize']
  /** The resource that serves the kind; undefined when none does. */
  readonly resourceOf: (kind: GroupVersionKind) => string | undefined
}

type Allocate<T extends KubeObject> = NonNullable<Resource<T>['allocate']>

interface PolicyLike extends KubeObject {
  readonly spec: { readonly paramKind?: ParamKind }
}

/** The resource with the check; as it is where authorization is off. */
export function guardParamKind<T extends PolicyLike>(
  resource: Resource<T>,
  access: ParamAccess | undefined,
): Resource<T> {
  if (access === undefined) return resource
  const allocate: Allocate<T> = async (next, old, context) => {
    const { paramKind } = next.spec
    if (paramKind === undefined || semanticEqual(paramKind, old?.spec.paramKind)) return nothingReserved
    return refuseUnless(resource, [next, old], context, {
      field: 'spec.paramKind',
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
  /** Of the policies that are bound. */
  readonly policies: Kind<PolicyLike>
  /** Upstream's text for one of the two kinds names verb and user in the wrong order. */
  readonly refusal: (user: string, verb: string) => string
}

/** The same for what a binding names. */
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
      field: 'spec.paramRef',
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
  /** What could not be done about the kind. */
  readonly problem?: string
}

/** What is not known for sure needs the right to everything. */
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
  readonly field: string
  readonly why: string | undefined
}

/** Members of `system:masters` may do everything. Of an object that is not well formed only that is said, by its rules. */
function refuseUnless<T extends KubeObject>(
  { kind, validate, validateUpdate }: Resource<T>,
  [next, old]: readonly [T, T | undefined],
  context: WriteContext,
  { field, why }: Refusal,
): Finish {
  if (why === undefined || context.user.groups.includes(PRIVILEGED_GROUP)) return nothingReserved
  const faults = old === undefined ? validate?.(next, context) : validateUpdate?.(next, old, context)
  if ((faults ?? []).length > 0) return nothingReserved
  throw invalidError({ group: kind.group, kind: kind.kind }, next.metadata.name ?? '', [forbidden(field, why)])
}

/** As Go prints upstream's struct. */
function userText({ name, uid, groups, extra }: User): string {
  const extras = Object.entries(extra)
    .sort(([one], [other]) => compareText(one, other))
    .map(([key, values]) => `${key}:[${values.join(' ')}]`)
  return `&{${name} ${uid} [${groups.join(' ')}] map[${extras.join(' ')}]}`
}
