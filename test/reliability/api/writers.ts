/** Clients that create, update, patch, apply and delete objects as fast as the API responds. */
import type { Random } from '#lib/random.ts'

import type { Ledger } from './ledger.ts'
import { credentials, type Target } from './program.ts'
import { RawClient, type RawAnswer, type RawRequest } from './raw-http.ts'

export const MAPS = '/api/v1/namespaces/default/configmaps'

/** Each writer has names of its own, so that it knows what is there. */
const NAMES_EACH = 4

interface Write {
  readonly request: RawRequest
  /** Of the object afterwards; undefined for none. */
  readonly content: string | undefined
}

export interface WriterOptions {
  readonly target: Target
  readonly ledger: Ledger
  readonly random: Random
  readonly writer: number
}

/** Writes until the signal, or until the server breaks off; what was sent last may then have been done or not. */
export async function writeOn(options: WriterOptions, signal: AbortSignal): Promise<void> {
  const { target, ledger, random, writer } = options
  const client = new RawClient(target, credentials('root'))
  try {
    for (let turn = 0; !signal.aborted; turn++) {
      const name = `w${writer}-${random.int(NAMES_EACH)}`
      const { request, content } = nextWrite(options, name, `${turn}-${random.int(1e9)}`)
      const acknowledge = ledger.attempt(name, content)
      const answer = await client.send(request)
      acknowledge(versionIn(answer, request, ledger))
    }
  } catch {
    // The server is gone; so is this connection.
  } finally {
    client.close()
  }
}

function nextWrite({ ledger, random }: WriterOptions, name: string, content: string): Write {
  const path = `${MAPS}/${name}`
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { content } }
  const body = JSON.stringify(object)
  const apply = { 'content-type': 'application/apply-patch+yaml' }
  const merge = { 'content-type': 'application/merge-patch+json' }
  if (ledger.contentOf(name) === undefined) {
    if (random.int(3) > 0) return { content, request: { method: 'POST', path: MAPS, body } }
    return { content, request: { method: 'PATCH', path: `${path}?fieldManager=a&force=true`, headers: apply, body } }
  }
  switch (random.int(5)) {
    case 0:
      return { content: undefined, request: { method: 'DELETE', path } }
    case 1:
      return { content, request: { method: 'PATCH', path: `${path}?fieldManager=a&force=true`, headers: apply, body } }
    case 2:
      return {
        content,
        request: { method: 'PATCH', path, headers: merge, body: JSON.stringify({ data: { content } }) },
      }
    default: {
      const guarded = { ...object, metadata: { name, resourceVersion: String(ledger.versionOf(name)) } }
      return { content, request: { method: 'PUT', path, body: JSON.stringify(guarded) } }
    }
  }
}

/** A delete answers a Status, which has no version. */
function versionIn({ status, body }: RawAnswer, { method, path }: RawRequest, ledger: Ledger): number | undefined {
  if (status !== 200 && status !== 201) {
    ledger.problems.push(`${method} ${path} was answered ${status}: ${body.toString().slice(0, 200)}`)
    return undefined
  }
  if (method === 'DELETE') return undefined
  const { metadata } = JSON.parse(body.toString()) as { metadata: { resourceVersion: string } }
  return Number(metadata.resourceVersion)
}
