/** From a call to the handler of its verb; what the resource does not serve is refused here, in upstream's words. */
import { failure, genericError, methodNotSupportedError } from '#meta/status-errors.ts'

import type { Answer, Call } from './call.ts'
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

/** Handlers of subresources that are more than a part of their object, by `plural/subresource` or by `*` + `/subresource`. */
export type Connectors = Readonly<Record<string, Readonly<Record<string, Handler>>>>

export function createDispatch(registry: Registry, connectors: Connectors): (call: Call) => Promise<Answer> {
  return async (call) => {
    const { group, version, resource, subresource, verb } = call.info
    const view = registry.find({ group, version, resource })
    if (view === undefined) {
      const review = registry.findReview({ group, version, resource })
      if (review !== undefined) return answerReview(call, review, registry.services)
      throw notServed()
    }
    if (view.resource.deprecation !== undefined) call.warn(view.resource.deprecation)
    const { kind } = view.representation
    const gr = { group, resource }
    if (subresource === '') {
      const handler = VERBS[verb]
      if (handler === undefined || !kind.verbs.includes(verb)) throw methodNotAllowed(call, gr)
      return handler(call, view)
    }
    const part = kind.subresources.find(({ name }) => name === subresource)
    if (part === undefined) throw notServed()
    if (!part.verbs.includes(verb)) throw methodNotAllowed(call, gr)
    const handler =
      connectors[`${resource}/${subresource}`]?.[verb] ??
      (subresource === 'scale' ? scaleHandlers[verb] : partHandler(view, subresource, verb))
    if (handler === undefined) throw methodNotAllowed(call, gr)
    return handler(call, view)
  }
}

/** Subresources through which the object itself is read and written: `status` and the resource's other parts. */
function partHandler({ resource }: View, subresource: string, verb: string): Handler | undefined {
  const isPart = subresource === 'status' || Object.hasOwn(resource.parts ?? {}, subresource)
  return isPart && (verb === 'get' || verb === 'update' || verb === 'patch') ? VERBS[verb] : undefined
}

/** A group version that is served, without this resource: clients must be able to tell it from a missing object. */
function notServed(): Error {
  return failure({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  })
}

function methodNotAllowed(call: Call, resource: { readonly group: string; readonly resource: string }): Error {
  const { verb } = call.info
  if (verb === '') return genericError({ code: 405, method: call.method })
  return methodNotSupportedError(resource, verb)
}
