/**
 * Encodes objects in the form that the client requested: complete, metadata only, or a Table. Every verb that returns
 * objects uses it. As in upstream, the server rejects an unacceptable form only after it has executed the request.
 */
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import type { Form } from '#component/requests/response-form.ts'
import { gvkOf } from '#component/requests/value-encoder.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { contentTypeOf, notAList, notAnObject } from '#meta/codec/negotiate.ts'
import { partialObject } from '#meta/codec/partial.ts'
import { internalTypeOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { failure } from '#meta/status-errors.ts'

import { compressed } from '../answers/gzip.ts'
import type { Entry } from '../registry/entry.ts'
import type { Representation } from '../registry/representation.ts'
import { listAnswer, runsOf } from './list-body.ts'
import { tableOf, type TableParts, type TableView } from './table.ts'

/** Throws 406 if the client wants the object as a list. */
export async function answerWithObject(
  call: Call,
  view: TableView,
  entry: Entry,
  { form, status }: { readonly form: Form; readonly status: number },
): Promise<WholeAnswer> {
  if (!isTable(form)) return compressed(call, await view.representation.object(entry, form, status))
  // An object that was never stored has no version.
  const metadata = entry.modRevision === 0 ? {} : { resourceVersion: String(entry.modRevision) }
  return { ...(await tableOf(call, view, { entries: [entry], metadata, form })), status }
}

/** Throws 406 if the client wants the list as one object. */
export async function answerWithList(call: Call, view: TableView, parts: TableParts): Promise<WholeAnswer> {
  const { entries, metadata, form } = parts
  refuseOneObject(view, form)
  if (isTable(form)) return compressed(call, await tableOf(call, view, parts))
  const items = view.representation.itemForm(form)
  if (items === undefined) return compressed(call, await view.representation.listForPeople(entries, metadata, form))
  const runs = await runsOf(entries, items)
  return listAnswer(call, { contentType: contentTypeOf(form.negotiated), form: items, metadata, runs })
}

/** Encodes objects without a store and without columns: a Scale, a review, a token. Throws 406 as for objects. */
export function answerWithValue(
  representation: Representation,
  object: KubeObject,
  { form, status }: { readonly form: Form; readonly status: number },
): WholeAnswer {
  const { as } = form.negotiated
  if (as === undefined) return representation.value(object, form, status)
  if (as.kind === 'PartialObjectMetadataList') throw failure(notAList(`*${internalTypeOf(gvkOf(object))}`))
  const partial = partialObject(object as unknown as JsonObject, as)
  return representation.value(partial as unknown as KubeObject, form, status)
}

export function isTable({ negotiated }: Form): boolean {
  return negotiated.as?.kind === 'Table'
}

export function refuseOneObject({ representation }: TableView, { negotiated }: Form): void {
  if (negotiated.as?.kind !== 'PartialObjectMetadata') return
  const { group, listKind } = representation.kind
  // Upstream's name of the list's type: `*core.ConfigMapList`.
  throw failure(notAnObject(`*${internalTypeOf({ group, kind: listKind })}`))
}
