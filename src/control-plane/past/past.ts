/** Serves the paths below `/past/<moment>`: the API of the cluster as it was, read-only, for any client. */
import { Namespaces } from '#apis/core/v1.ts'
import type { ApiServerParts } from '#apiserver/apiserver.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { type Answer, type Call, isUpgrade, isWhole } from '#component/requests/call.ts'
import { notFoundPage } from '#component/requests/not-found-page.ts'
import { badRequestError, failure, resourceExpiredError } from '#meta/status-errors.ts'
import { type Backend, type Revision, StorageError } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { prepareValues } from '#storage/encryption/prepared-backend.ts'
import { revisionOf } from '#storage/revision-of.ts'

import type { Environment } from '../environment.ts'
import { listChanges } from './changes.ts'
import { createPastAccess, type NamespacePast } from './past-access.ts'
import { isPastRange, parsePastMoment, parsePastRange } from './past-moment.ts'
import { Pasts } from './pasts.ts'

export interface PastOptions {
  readonly backend: Backend
  readonly registry: Registry
  readonly atRest: AtRest
  /** The rules of today. */
  readonly authorizer: Authorizer
  readonly serverAddress: string
}

export function createPast(
  environment: Environment,
  { backend, registry, atRest, authorizer, serverAddress }: PastOptions,
): Pick<ApiServerParts, 'authorize' | 'past'> {
  const { clock, closing } = environment
  const pasts = new Pasts({
    clock,
    // Few servers need it, and none at once.
    open: async (plan) => {
      const { openPast } = await import('./past-state.ts')
      return openPast(environment, { backend, atRest, serverAddress }, plan).catch(explained)
    },
    parse: (text) => parsePastMoment(text, clock.now()),
    revisionOf: ({ moment }) => known(() => revisionOf(backend, moment)),
  })
  closing.defer(() => pasts.close())
  const uidOf = uidsIn(registry)
  const readable = prepareValues(backend, atRest)
  const withPast = async <T>(moment: string, task: (past: NamespacePast) => Promise<T>): Promise<T> => {
    const { state, release } = await pasts.use(moment, false)
    try {
      return await task({ authorizer: state.authorizer, uidOf: uidsIn(state.registry) })
    } finally {
      release()
    }
  }
  const changes = async (call: Call): Promise<Answer> => {
    const { info } = call
    const isReading = info.isResource && (info.verb === 'get' || info.verb === 'list') && info.subresource === ''
    if (!isReading) throw badRequestError('only objects and collections have changes')
    const range = parsePastRange(info.moment ?? '', clock.now())
    const [oldest, to] = [(await backend.health()).compactedRevision, known(() => revisionOf(backend, range.to))]
    const from = Math.max(
      oldest,
      'revision' in range.from ? range.from.revision : (backend.revisionAt(range.from.timeMs) ?? 0),
    )
    const { state, release } = await pasts.use(`rv:${to}`, false)
    try {
      const view = state.registry.find(info)
      if (view === undefined) return notFoundPage()
      return await listChanges(call, view, { backend: readable, trail: registry.services.trail, from, to }).catch(
        explained,
      )
    } finally {
      release()
    }
  }
  return {
    authorize: createPastAccess({ authorizer, uidOf, withPast }),
    async past(call) {
      if (call.method !== 'GET' && call.method !== 'HEAD') throw readOnly()
      const { info } = call
      if (isPastRange(info.moment ?? '')) return changes(call)
      const { state, release } = await pasts.use(info.moment ?? '', info.verb === 'watch')
      try {
        return holding((await state.answer(call)) ?? notFoundPage(), release)
      } catch (error) {
        release()
        throw error
      }
    },
  }
}

function uidsIn(registry: Registry): (namespace: string) => Promise<string | undefined> {
  return async (namespace) => (await registry.get(Namespaces, '', namespace))?.metadata.uid
}

function readOnly(): Error {
  const message = 'the past cannot be changed: paths below /past can only be read'
  return failure({ code: 405, reason: 'MethodNotAllowed', message, details: {} })
}

function known(find: () => Revision): Revision {
  try {
    return find()
  } catch (error) {
    return explained(error)
  }
}

/** The store does not have the state. */
function explained(error: unknown): never {
  if (error instanceof StorageError && (error.code === 'compacted' || error.code === 'future-revision'))
    throw resourceExpiredError(error.message)
  throw error
}

/** Releases when the answer was sent or dropped. */
function holding(answer: Answer, release: () => void): Answer {
  if (isWhole(answer)) {
    release()
    return answer
  }
  const drop = (): void => {
    answer.drop?.()
    release()
  }
  if (isUpgrade(answer)) return { ...answer, drop, upgrade: (...args) => answer.upgrade(...args).finally(release) }
  return { ...answer, drop, stream: (out) => answer.stream(out).finally(release) }
}
