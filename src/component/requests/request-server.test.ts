import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { User } from '#auth/user.ts'
import { activeCauses } from '#lib/causes.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createSeededRandom } from '#lib/random.ts'
import { unauthorizedError } from '#meta/status-errors.ts'

import type { Answer } from './call.ts'
import { createCors } from './cors.ts'
import { createInflight } from './inflight.ts'
import { type RequestMeter, UNMETERED } from './request-meter.ts'
import { createRequestServer } from './request-server.ts'
import type { RequestServerOptions } from './server-options.ts'

interface Sent {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const ok: Answer = { status: 200, contentType: 'text/plain', body: 'ok' }
const jane: User = { name: 'jane', uid: '', groups: [], extra: {} }

function exchangeOf(request: Required<TestRequest>, sent: (answer: Sent) => void): Exchange {
  const { method, path, headers } = request
  const respond: Exchange['respond'] = (status, list, body = '') => {
    const pairs = list.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), list[at + 1] ?? ''] as const] : []))
    sent({ status, headers: Object.fromEntries(pairs), body: body.toString() })
  }
  const rawHeaders = Object.entries(headers).flat()
  return { method, path, headers, rawHeaders, respond, signal: new AbortController().signal } as unknown as Exchange
}

interface TestRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Record<string, string>
}

function createServer(options: Partial<RequestServerOptions>): (request?: TestRequest) => Promise<Sent> {
  const serve = createRequestServer({
    clock: createVirtualClock(),
    random: createSeededRandom(1),
    authenticate: () => jane,
    authorize: () => ({ allowed: true, reason: '' }),
    dispatch: () => Promise.resolve(ok),
    knowsGroup: () => true,
    routes: () => ok,
    encoder: {
      value: (value, _form, status) => ({ status, contentType: 'application/json', body: JSON.stringify(value) }),
    },
    ...options,
  })
  return async ({ method = 'GET', path = '/api/v1/namespaces/a/pods', headers = {} } = {}) => {
    const answered = Promise.withResolvers<Sent>()
    await serve(exchangeOf({ method, path, headers }, answered.resolve))
    return answered.promise
  }
}

describe('RequestServer', () => {
  it('handles a write with the causes in its header, if they are well-formed', async () => {
    const seen: (readonly string[])[] = []
    const ask = createServer({
      async dispatch() {
        await new Promise(setImmediate)
        seen.push(activeCauses())
        return ok
      },
    })
    const rows = [
      ['POST', 'nodes/one@7,pods/a/b@1', ['nodes/one@7', 'pods/a/b@1']],
      ['DELETE', 'nodes/one@7', ['nodes/one@7']],
      ['GET', 'nodes/one@7', []],
      ['POST', 'no cause', []],
      ['POST', '', []],
    ] as const
    for (const [method, header, causes] of rows) {
      assert.equal((await ask({ method, headers: { 'hyperkube-because': header } })).status, 200)
      assert.deepEqual(seen.pop(), causes, `${method} ${header}`)
    }
  })
})

const broken = (): Promise<Answer> => Promise.reject(new Error('broken'))

describe('filters of the API server', () => {
  it('reject excess requests with Retry-After', async () => {
    const blocked = Promise.withResolvers<Answer>()
    const inflight = createInflight({ maxReading: 1, maxMutating: 1 })
    const ask = createServer({ inflight, dispatch: () => blocked.promise })
    const first = ask()
    await new Promise(setImmediate)
    const second = await ask()
    assert.equal(second.status, 429)
    assert.equal(second.headers['retry-after'], '1')
    assert.equal(second.body, 'Too many requests, please try again later.\n')
    blocked.resolve(ok)
    assert.equal((await first).status, 200)
    assert.equal((await ask()).status, 200)
    assert.equal(inflight.running('readOnly'), 0)
  })

  it('release the seat of a request that fails', async () => {
    const inflight = createInflight({ maxReading: 1, maxMutating: 1 })
    assert.equal((await createServer({ inflight, dispatch: broken })()).status, 500)
    assert.equal(inflight.running('readOnly'), 0)
  })

  it('impersonate the user before authorization', async () => {
    const users: string[] = []
    const ask = createServer({
      impersonate: (user) => ({ ...user, name: `${user.name}'s friend` }),
      authorize(user) {
        users.push(user.name)
        return { allowed: false, reason: 'no' }
      },
    })
    assert.equal((await ask()).status, 403)
    assert.deepEqual(users, ["jane's friend"])
  })

  it('reject requests without credentials if anonymous access is disabled', async () => {
    assert.equal((await createServer({ authenticate: () => undefined })()).status, 200)
    assert.equal((await createServer({ authenticate: () => undefined, allowsAnonymous: false })()).status, 401)
  })

  it('answer CORS preflight requests before authentication', async () => {
    const ask = createServer({ cors: createCors(['//a$']), authenticate: () => assert.fail('asked') })
    const got = await ask({ method: 'OPTIONS', headers: { origin: 'https://a' } })
    assert.equal(got.status, 204)
    assert.equal(got.headers['access-control-allow-credentials'], 'true')
  })

  it('add fixed headers to responses and errors', async () => {
    const fixedHeaders = ['Strict-Transport-Security', 'max-age=1']
    for (const dispatch of [() => Promise.resolve(ok), broken]) {
      const got = await createServer({ fixedHeaders, dispatch })()
      assert.equal(got.headers['strict-transport-security'], 'max-age=1')
    }
  })

  it('report each step and the status code to the metrics', async () => {
    const steps: string[] = []
    const meterRequest = (): RequestMeter => ({
      ...UNMETERED,
      identified: (result) => void steps.push(result),
      decided: (result) => void steps.push(result),
      routed: () => void steps.push('routed'),
      end: (code) => void steps.push(String(code)),
    })
    const wrong = (): never => {
      throw unauthorizedError('Unauthorized')
    }
    await createServer({ meterRequest })()
    await createServer({ meterRequest, authorize: () => ({ allowed: false, reason: '' }) })()
    await createServer({
      meterRequest,
      authorize: () => Promise.resolve({ allowed: false, denied: true, reason: '' }),
    })()
    await createServer({ meterRequest, authorize: () => Promise.reject(new Error('away')) })()
    await createServer({ meterRequest, dispatch: broken })()
    await createServer({ meterRequest, authenticate: wrong })()
    await createServer({ meterRequest, authenticate: () => undefined, allowsAnonymous: false })()
    assert.deepEqual(
      steps
        .join(' ')
        .replaceAll(/(\d{3}) ?/g, '$1\n')
        .trim()
        .split('\n'),
      [
        'success allowed routed 200',
        'success no-opinion 403',
        'success denied 403',
        'success error 500',
        'success allowed routed 500',
        'error 401',
        'failure 401',
      ],
    )
  })
})
