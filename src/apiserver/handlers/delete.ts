/** DELETE: deletes one object, or a collection. */
import type { Answer, Call } from '#component/requests/call.ts'
import { CodecError } from '#meta/codec/error.ts'
import { isRefusal, MEDIA_TYPES, negotiateContentType } from '#meta/codec/negotiate.ts'
import { decodeObject } from '#meta/codec/object.ts'
import type { KubeObject } from '#meta/object.ts'
import { decodeDeleteOptions, type DeleteOptions, invalidOptionsError, validateDeleteOptions } from '#meta/options.ts'
import { badRequestError, failure } from '#meta/status-errors.ts'
import { isNotFound } from '#meta/status.ts'

import type { Entry } from '../registry/entry.ts'
import { BUILT_IN, type Shapes } from '../registry/shapes.ts'
import { answerWithList, answerWithObject } from './answers.ts'
import { otherRequest, writeRequestOf } from './body.ts'
import { listOptionsOf, selectEntries } from './list.ts'
import { selectionOf } from './selection.ts'
import { formFor, type View } from './view.ts'

export async function deleteObject(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  const options = await deleteOptionsOf(call, view)
  warnOfDeletion(call, view, options)
  const { entry, gone } = await view.store.delete(
    writeRequestOf(call, view.representation.kind, options),
    call.info.name,
    options,
  )
  if (gone && view.resource.deleteAnswersObject !== true)
    return view.representation.value(successOf(view, entry), form, 200)
  // A client that requests orphanDependents=false gets 202 while the object still exists.
  const status = !gone && options.orphanDependents === false ? 202 : 200
  return answerWithObject(call, view, entry, { form, status })
}

/** Upstream's workers wait for the store after each object; here concurrent commits share one sync. */
const DELETIONS_OF_A_WORKER = 16

/** Deletes the selected objects, several at a time, and returns their list. The first failure stops it. */
export async function deleteCollection(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'list')
  const listOptions = listOptionsOf(call, view)
  const selection = selectionOf(view, call.info.namespace, listOptions)
  const options = await deleteOptionsOf(call, view)
  warnOfDeletion(call, view, options)
  const { entries, metadata } = await selectEntries(call, view, { options: listOptions, selection })
  const waiting = entries.values()
  const failures: unknown[] = []
  const deleteInTurn = async (): Promise<void> => {
    for (const entry of waiting) {
      if (failures.length > 0) return
      await deleteOneOfMany(call, view, { entry, options }).catch((error: unknown) => failures.push(error))
    }
  }
  const { deleteWorkers = 1 } = view.services
  await Promise.all(Array.from({ length: deleteWorkers * DELETIONS_OF_A_WORKER }, deleteInTurn))
  if (failures.length > 0) throw failures[0]
  return answerWithList(call, view, { entries, metadata, form })
}

async function deleteOneOfMany(
  call: Call,
  view: View,
  { entry, options }: { readonly entry: Entry; readonly options: DeleteOptions },
): Promise<void> {
  call.signal.throwIfAborted()
  // A repeated request continues with the rest.
  if (call.deadlineMs !== undefined && view.services.clock.elapsed() > call.deadlineMs) {
    throw new Error('The time of the request was over before all was deleted')
  }
  const whole = writeRequestOf(call, view.representation.kind, options)
  const request = otherRequest(whole, { namespace: entry.namespace, isOneOfMany: true })
  try {
    await view.store.delete(request, entry.name, options)
  } catch (error) {
    // Another client deleted it: the goal is reached.
    if (!isNotFound(error)) throw error
  }
}

/** The options from the body, or else from the query. */
async function deleteOptionsOf(call: Call, view: View): Promise<DeleteOptions> {
  const body = await call.body()
  const options = body.length === 0 ? decodeDeleteOptions(call.query) : decodeOptions(call, view, body)
  const errors = validateDeleteOptions(options)
  if (errors.length > 0) throw invalidOptionsError('DeleteOptions', errors)
  return options
}

function warnOfDeletion(call: Call, { resource }: View, options: DeleteOptions): void {
  for (const warning of resource.deletionWarnings?.(options) ?? []) call.warn(warning)
}

function decodeOptions(call: Call, { representation }: View, body: Buffer): DeleteOptions {
  const mediaType = negotiateContentType(call.header('content-type'), MEDIA_TYPES)
  if (isRefusal(mediaType)) throw failure(mediaType)
  const { group, version } = representation.kind
  const defaultKind = { group, version, kind: 'DeleteOptions' }
  const meta = { group: '', version: 'v1', kind: 'DeleteOptions' }
  try {
    // Clients send it as v1, as meta.k8s.io/v1 or as the group version of the request; all are equal.
    const schemaFor: Shapes['schemaFor'] = (gvk) => BUILT_IN.schemaFor(gvk.kind === 'DeleteOptions' ? meta : gvk)
    const { object } = decodeObject(body, mediaType, { schemaFor, defaultKind })
    // Upstream's name of its internal type.
    call.audit?.body({ ...object, apiVersion: 'meta.k8s.io/__internal' } as unknown as KubeObject)
    return object
  } catch (cause) {
    throw cause instanceof CodecError ? badRequestError(cause.message) : cause
  }
}

/** The Status of a completed deletion. It has no code. */
function successOf({ representation }: View, { name, object }: Entry): KubeObject {
  const { group, plural } = representation.kind
  const details = { name, ...(group === '' ? {} : { group }), kind: plural, uid: object.metadata.uid }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details } as KubeObject
}
