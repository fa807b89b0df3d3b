/** PUT: replaces an object, or the part of the object that a subresource represents. */
import type { Answer, Call } from '#component/requests/call.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { invalidOptionsError, updateOptionsQuery, validateUpdateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError } from '#meta/status-errors.ts'

import type { Transform } from '../registry/store.ts'
import { answerWithObject } from './answers.ts'
import { decodeBody, settleNamespace, writeRequestOf } from './body.ts'
import { expectedVersion, versionRequired } from './versions.ts'
import { formFor, type View } from './view.ts'

export async function updateObject(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  const options = decodeQuery(updateOptionsQuery, call.query)
  const errors = validateUpdateOptions(options)
  if (errors.length > 0) throw invalidOptionsError('UpdateOptions', errors)
  const { kind } = view.representation
  const object = await decodeBody(call, view, kind, options.fieldValidation)
  settleNamespace(object, call, kind.namespaced)
  settleName(object, call)
  const { uid = '' } = object.metadata
  const { resourceVersion = '', refuse } = versionOf(object)
  const needsVersion = resourceVersion === '' && view.resource.putNeedsVersion === true
  const creates = view.resource.putCreates === true && call.info.subresource === ''
  const terms = {
    ...(creates && { mayCreate: () => call.demand('create') }),
    ...(resourceVersion === '' ? {} : { resourceVersion }),
    ...(uid === '' ? {} : { uid }),
  }
  const transform: Transform = (live) => {
    refuse?.()
    // An object that does not exist yet has no version to match.
    if (needsVersion && live.metadata.uid !== undefined) {
      const { group, plural } = kind
      throw versionRequired({ group, resource: plural }, call.info.name)
    }
    // Without a version the update is retried after a conflict.
    return resourceVersion === '' ? deepCopy(object) : object
  }
  const request = writeRequestOf(call, kind, options)
  const { entry, created } = await view.store.update(request, call.info.name, transform, terms)
  return answerWithObject(call, view, entry, { form, status: created ? 201 : 200 })
}

/** An invalid version is reported after the object was found. */
function versionOf({ metadata }: KubeObject): { readonly resourceVersion?: string; readonly refuse?: () => never } {
  try {
    return { resourceVersion: expectedVersion(metadata) }
  } catch (error) {
    const refuse = (): never => {
      throw error
    }
    return { refuse }
  }
}

/** The name of the body must be the path's. */
export function settleName({ metadata: { name = '' } }: KubeObject, { info }: Call): void {
  if (name === '') {
    const which = `the name of the object (${info.name} based on URL)`
    throw badRequestError(`${which} was undeterminable: name must be provided`)
  }
  if (name !== info.name) {
    throw badRequestError(`the name of the object (${name}) does not match the name on the URL (${info.name})`)
  }
}
