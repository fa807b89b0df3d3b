/** Serves the paths below `/past/<moment>`: the API of the cluster as it was, read-only, for any client. */
import { Namespaces } from '#apis/core/v1.ts'
import type { ApiServerParts } from '#apiserver/apiserver.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import { type Answer, type Call, isUpgrade, isWhole } from '#component/requests/call.ts'
import { notFoundPage } from '#component/requests/not-found-page.ts'
import type { LongHistory } from '#history/long-history.ts'
import { HistoryGapError } from '#history/recorded-change.ts'
import type { Clock } from '#lib/clock.ts'
import type { Moment } from '#lib/time/moment.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { badRequestError, failure, resourceExpiredError } from '#meta/status-errors.ts'
import { type Revision, StorageError } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import { revisionOf } from '#storage/revision-of.ts'

import type { Environment } from '../environment.ts'
import { keysOf, listChanges } from './changes.ts'
import { isMomentsPath, momentRangeOf, oldestOf } from './moments.ts'
import { createPastAccess, type PastNamespaces } from './past-access.ts'
import { isPastRange, parsePastMoment, parsePastRange } from './past-moment.ts'
import type { PastState } from './past-state.ts'
import { PastStates } from './past-states.ts'

export interface PastOptions {
  readonly history: LongHistory
  readonly registry: Registry
  readonly atRest: AtRest
  /** The present rules. */
  readonly authorizer: Authorizer
  readonly serverAddress: string
}

export function createPast(environment: Environment, options: PastOptions): Pick<ApiServerParts, 'authorize' | 'past'> {
  const { authorizer, registry } = options
  const server = new PastServer(environment, options)
  const withPastState = <T>(moment: string, task: (then: PastNamespaces) => Promise<T>): Promise<T> =>
    server.withState(moment, (state) => task({ authorizer: state.authorizer, uidOf: uidsIn(state.registry) }))
  return {
    authorize: createPastAccess({ authorizer, uidOf: uidsIn(registry), withPastState }),
    past(call) {
      if (call.info.moment !== undefined) return server.answer(call)
      return isMomentsPath(call.info) ? server.moments(call) : undefined
    },
  }
}

class PastServer {
  readonly #options: PastOptions
  readonly #clock: Clock
  readonly #states: PastStates

  constructor(environment: Environment, options: PastOptions) {
    const { history } = options
    this.#options = options
    this.#clock = environment.clock
    this.#states = new PastStates({
      clock: environment.clock,
      // Few servers need it, and none at once.
      open: async (plan) => {
        const { openPast } = await import('./past-state.ts')
        return openPast(environment, options, plan)
      },
      parse: (text) => parsePastMoment(text, environment.clock.now()),
      revisionOf: ({ moment }) => revisionOf(history, moment),
      onError: (error) => environment.log.error(error, 'Failed to close a past state'),
    })
    environment.closing.defer(() => this.#states.close())
  }

  /** Answers with the range of moments. */
  async moments(call: Call): Promise<Answer> {
    if (!isReading(call)) throw readOnly()
    const { history } = this.#options
    const body = Buffer.from(encodeJson(momentRangeOf(history, await history.reach())))
    return { status: 200, contentType: 'application/json', body }
  }

  async answer(call: Call): Promise<Answer> {
    const { moment = '' } = call.info
    const isForgetting = call.method === 'DELETE' && isPastRange(moment)
    if (!isForgetting && !isReading(call)) throw readOnly()
    try {
      if (isForgetting) return await this.#forget(call, moment)
      return isPastRange(moment) ? await this.#changes(call, moment) : await this.#state(call, moment)
    } catch (error) {
      return this.#explain(error)
    }
  }

  withState<T>(moment: string, task: (state: PastState) => Promise<T>): Promise<T> {
    return this.#withState(moment, task).catch((error: unknown) => this.#explain(error))
  }

  async #state(call: Call, moment: string): Promise<Answer> {
    const { state, release } = await this.#states.use(moment, call.info.verb === 'watch')
    try {
      return holding((await state.answer(call)) ?? notFoundPage(), release)
    } catch (error) {
      release()
      throw error
    }
  }

  async #withState<T>(moment: string, task: (state: PastState) => Promise<T>): Promise<T> {
    const { state, release } = await this.#states.use(moment, false)
    try {
      return await task(state)
    } finally {
      release()
    }
  }

  /** Deletes the changes of an object or a collection from the history file. */
  async #forget({ info, user }: Call, moments: string): Promise<Answer> {
    const { history, registry } = this.#options
    const range = parsePastRange(moments, this.#clock.now())
    if (!info.isResource || info.subresource !== '') throw badRequestError('only objects and collections have changes')
    const { labelSelector = '', fieldSelector = '' } = info
    if (labelSelector + fieldSelector !== '') throw badRequestError('the history cannot forget by labels or fields')
    const { first } = await history.reach({ withoutSizes: true })
    if (earliestOf(history, range.from) > first)
      throw badRequestError('the history forgets from its beginning: the moments must begin with "rv:0.."')
    const view = registry.find(info)
    if (view === undefined) return notFoundPage()
    const count = await history.forget(keysOf(info, view), revisionOf(history, range.to), user.name)
    if (count === undefined) throw readOnly()
    // Open states still have the objects.
    await this.#states.closeAll()
    const message = `the history has forgotten ${count} changes; the store keeps those of the last minutes until it compacts them`
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', message, code: 200 }
    return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(status)) }
  }

  async #changes(call: Call, moments: string): Promise<Answer> {
    const { info } = call
    const range = parsePastRange(moments, this.#clock.now())
    const hasChanges = info.isResource && (info.verb === 'get' || info.verb === 'list') && info.subresource === ''
    if (!hasChanges) throw badRequestError('only objects and collections have changes')
    if (hasSelectors(info)) throw badRequestError('changes cannot be selected by labels or fields')
    const { history, atRest, registry } = this.#options
    const { first, gaps } = await history.reach({ withoutSizes: true })
    const from = Math.max(first, earliestOf(history, range.from))
    const to = revisionOf(history, range.to)
    const source = { history, atRest, gaps, trail: registry.services.trail, from, to }
    return this.#withState(`rv:${to}`, async (state) => {
      const view = state.registry.find(info)
      return view === undefined ? notFoundPage() : listChanges(call, view, source)
    })
  }

  /** Throws 410 if the store does not have the state. */
  async #explain(error: unknown): Promise<never> {
    if (!(error instanceof StorageError)) throw error
    if (error.code === 'future-revision') throw resourceExpiredError(error.message)
    if (error.code !== 'compacted') throw error
    if (error instanceof HistoryGapError) throw resourceExpiredError(error.message)
    const { history } = this.#options
    const { resourceVersion, time } = oldestOf(history, await history.reach({ withoutSizes: true }))
    const isRevision = error.compactedRevision !== undefined
    const what = isRevision ? 'The history of the cluster does not reach back to this revision' : error.message
    const since = time === undefined ? '' : `${time}, `
    throw resourceExpiredError(`${what}: it begins at ${since}rv:${resourceVersion}`)
  }
}

/** Authorizers may allow only a selection, so it must not be ignored. A name is one that the path could have. */
function hasSelectors({ name, fieldSelector = '', labelSelector = '' }: RequestInfo): boolean {
  return labelSelector !== '' || (fieldSelector !== '' && fieldSelector !== `metadata.name=${name}`)
}

/** 0: before everything that the store knows. */
function earliestOf(history: LongHistory, moment: Moment): Revision {
  return 'revision' in moment ? moment.revision : (history.revisionAt(moment.timeMs) ?? 0)
}

function uidsIn(registry: Registry): (namespace: string) => Promise<string | undefined> {
  return async (namespace) => (await registry.get(Namespaces, '', namespace))?.metadata.uid
}

function readOnly(): Error {
  const message = 'the past cannot be changed: paths below /past can only be read'
  return failure({ code: 405, reason: 'MethodNotAllowed', message, details: {} })
}

function isReading({ method }: Call): boolean {
  return method === 'GET' || method === 'HEAD'
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
