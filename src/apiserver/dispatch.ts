/**
 * Dispatches a call to the handler of its verb. Rejects verbs that the resource does not serve, with upstream's texts.
 */
import { Bindings, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Answer, type Call, otherwise } from '#component/requests/call.ts'
import { notFoundPage } from '#component/requests/not-found-page.ts'
import { acceptsRoute, isRefusal, negotiatePatch } from '#meta/codec/negotiate.ts'
import { failure, genericError, internalError, methodNotSupportedError, notFoundError } from '#meta/status-errors.ts'
import { isAddedGroup } from '#model/catalog-groups.ts'

import { deprecationOf } from './filters/deprecations.ts'
import { createObject } from './handlers/create.ts'
import { deleteCollection, deleteObject } from './handlers/delete.ts'
import { getObject } from './handlers/get.ts'
import { listObjects } from './handlers/list.ts'
import { patchObject } from './handlers/patch.ts'
import { answerReview } from './handlers/review.ts'
import { scaleHandlers } from './handlers/scale.ts'
import { updateObject } from './handlers/update.ts'
import type { View } from './handlers/view.ts'
import { watchObjects } from './handlers/watch.ts'
import type { Registry } from './registry/registry.ts'
import type { Services } from './registry/services.ts'
import type { VirtualResource } from './registry/virtual.ts'
import { routingOf } from './routing.ts'

export type Handler = (call: Call, view: View) => Promise<Answer>

const VERBS: Readonly<Record<string, Handler>> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteObject,
  deletecollection: deleteCollection,
}

/** Handlers of special subresources, by `plural/subresource` or by `*` + `/subresource`. */
export type Connectors = Readonly<Record<string, Readonly<Record<string, Handler>>>>

export function createDispatch(registry: Registry, connectors: Connectors): (call: Call) => Promise<Answer> {
  const isCompressing = registry.services.isEnabled('APIResponseCompression')
  return async (original) => {
    const call = isCompressing ? original : withoutCompression(original)
    const { group, version, resource } = call.info
    const view = registry.find({ group, version, resource })
    if (view === undefined) return answerUnstored(call, registry, connectors)
    if (view.resource.custom !== undefined) {
      if (isElsewhere(call, view.resource.kind)) return notFoundPage()
      return answerCustom(call, view, connectors)
    }
    const handler = handlerOf(call, view, connectors)
    if (isRoutable(call)) noteDeprecation(call, view)
    return handler(call, view)
  }
}

/** Answers for resources that are not stored or do not exist. */
function answerUnstored(call: Call, registry: Registry, connectors: Connectors): Answer | Promise<Answer> {
  const { group, version, resource } = call.info
  if (resource === Bindings.plural && group === Bindings.group) return bindByBody(call, registry, connectors)
  const virtual = registry.findVirtual({ group, version, resource })
  if (virtual !== undefined) return answerVirtual(call, virtual, registry.services)
  const review = registry.findReview({ group, version, resource })
  if (review === undefined && isAddedGroup(group)) return notFoundPage()
  if (review === undefined || !isReviewPath(call, review.kind)) throw notServed()
  if (call.method !== 'POST') throw methodNotAllowed(call)
  return answerReview(call, review, registry.services)
}

/** True if the route accepts the request's media types. Requests without a route get no warnings. */
function isRoutable(call: Call): boolean {
  if (!acceptsRoute(call.header('accept'))) return false
  return call.info.verb !== 'patch' || !isRefusal(negotiatePatch(call.header('content-type'), 'builtin'))
}

function noteDeprecation(call: Call, view: View): void {
  if (view.resource.deprecation !== undefined) {
    call.warn(view.resource.deprecation)
    call.audit?.annotate('k8s.io/deprecated', 'true')
  }
  const deprecation = deprecationOf(view.representation.kind)
  if (deprecation === undefined) return
  call.warn(deprecation.text)
  call.audit?.annotate('k8s.io/deprecated', 'true')
  call.audit?.annotate('k8s.io/removed-release', deprecation.removedRelease)
  countDeprecated(call, view, deprecation.removedRelease)
}

/** True for a cluster-scoped kind under a namespace, or a namespaced kind outside one except for lists and watches. */
function isElsewhere({ info }: Call, { namespaced }: Kind): boolean {
  if (!namespaced) return info.namespace !== ''
  return info.namespace === '' && info.verb !== 'list' && info.verb !== 'watch'
}

/** Custom resources have no routes: every response, errors included, carries the deprecation warning of the version. */
function answerCustom(call: Call, view: View, connectors: Connectors): Promise<Answer> {
  const { custom } = view.resource
  if (custom?.brokenBecause !== undefined) throw internalError(new Error(custom.brokenBecause))
  noteDeprecation(call, view)
  refuseCustom(call, view)
  return handlerOf(call, view, connectors)(call, view)
}

function refuseCustom({ info }: Call, { resource: { kind } }: View): void {
  const named = { group: kind.group, resource: kind.plural }
  if (info.subresource === '') return
  const part = kind.subresources.find(({ name }) => name === info.subresource)
  if (part === undefined) throw notFoundError(named, info.name)
  if (!part.verbs.includes(info.verb)) throw methodNotSupportedError(named, info.verb)
}

function countDeprecated({ info }: Call, { services }: View, removedRelease: string): void {
  const { group, version, resource, subresource } = info
  const deprecated = services.metrics.family('apiserver_requested_deprecated_apis')
  deprecated.labels(group, version, resource, subresource, removedRelease).set(1)
}

/** POST to `bindings` equals POST to `pods/NAME/binding`; the name is in the body. */
function bindByBody(call: Call, registry: Registry, connectors: Connectors): Promise<Answer> {
  const view = registry.find({ group: Pods.group, version: Pods.version, resource: Pods.plural })
  const bind = connectors['pods/binding']?.['create']
  if (view === undefined || bind === undefined || !isReviewPath(call, Bindings)) throw notServed()
  if (call.method !== 'POST') throw methodNotAllowed(call)
  return bind(call, view)
}

function answerVirtual(call: Call, virtual: VirtualResource, services: Services): Promise<Answer> {
  const routing = routingOf(call.method, call.info, virtual.kind)
  if (routing === 'no-path' || call.info.subresource !== '') throw notServed()
  const handler = virtual.handlers[call.info.verb]
  const { group, plural } = virtual.kind
  if (call.info.verb === 'watch' && handler === undefined) {
    throw methodNotSupportedError({ group, resource: plural }, 'watch')
  }
  if (routing === 'no-method' || handler === undefined) throw methodNotAllowed(call)
  if (virtual.deprecation !== undefined && isRoutable(call)) call.warn(virtual.deprecation)
  return handler(call, services)
}

/** Throws 404 or 405 if there is none. */
function handlerOf(call: Call, view: View, connectors: Connectors): Handler {
  const { resource, subresource, verb, rest } = call.info
  const { kind } = view.representation
  const routing = routingOf(call.method, call.info, kind, view.resource.custom !== undefined)
  const part = subresource === '' ? kind : kind.subresources.find(({ name }) => name === subresource)
  if (part === undefined || routing === 'no-path') throw notServed()
  if (rest.length > 0 && subresource !== 'proxy') throw notServed()
  const connector = connectors[`${resource}/${subresource}`]?.[verb]
  // Connectors accept methods without an API verb, which discovery does not list.
  const isTaken = part.verbs.includes(verb) || connector !== undefined || isHidden(call, view)
  if (routing === 'no-method' || !isTaken) throw methodNotAllowed(call)
  const handler =
    subresource === ''
      ? VERBS[verb]
      : (connector ?? (subresource === 'scale' ? scaleHandlers[verb] : partHandler(view, subresource, verb)))
  if (handler === undefined) throw methodNotAllowed(call)
  return handler
}

/** A custom resource that is being deleted still works, although discovery no longer shows it. */
function isHidden({ info }: Call, { resource }: View): boolean {
  return resource.custom !== undefined && info.subresource === ''
}

/** Reviews have neither names nor lists over all namespaces. */
function isReviewPath({ info }: Call, { namespaced }: Kind): boolean {
  return info.name === '' && namespaced === (info.namespace !== '')
}

/** Subresources that read and write the object itself: `status` and the resource's other parts. */
function partHandler({ resource }: View, subresource: string, verb: string): Handler | undefined {
  const isPart = subresource === 'status' || Object.hasOwn(resource.parts ?? {}, subresource)
  return isPart && (verb === 'get' || verb === 'update' || verb === 'patch') ? VERBS[verb] : undefined
}

/**
 * The group version is served without this resource: clients must be able to distinguish that from a missing object.
 */
function notServed(): Error {
  return failure({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  })
}

/** No route for the method: upstream's text is the same for every resource. */
function methodNotAllowed({ method }: Call): Error {
  return genericError({ code: 405, method })
}

/** The same call without response compression. */
function withoutCompression(call: Call): Call {
  return otherwise(call, { header: (name) => (name === 'accept-encoding' ? '' : call.header(name)) })
}
