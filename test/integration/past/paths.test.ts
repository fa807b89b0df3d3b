/**
 * Tests that no path below `/past`, and none that looks like one, reaches present objects: with all methods, as any
 * user. Each test compares the revision of the whole store.
 */
import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { after, before, describe, it } from 'node:test'

import { type Bed, type Json, past, startBed, turns } from './bed.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const MAPS = '/api/v1/namespaces/default/configmaps'
const PODS = '/api/v1/namespaces/default/pods'
const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'LINK']

let bed: Bed
/** A moment before the object `late`. */
let early = ''
before(async () => {
  bed = await startBed()
  await bed.must('POST', MAPS, { metadata: { name: 'early' }, data: { value: 'old' } })
  await bed.must('POST', PODS, {
    metadata: { name: 'one' },
    spec: { containers: [{ name: 'main', image: 'web' }], automountServiceAccountToken: false },
  })
  early = `rv:${await bed.revision()}`
  await bed.clock.advance(5000)
  await bed.must('POST', MAPS, { metadata: { name: 'late' } })
  await bed.must('PUT', `${MAPS}/early`, { metadata: { name: 'early' }, data: { value: 'new' } })
  await bed.clock.advance(5000)
})
after(() => bed[Symbol.asyncDispose]())

/** A body for every method: none of them may be read. */
const BODY = { metadata: { name: 'intruder' }, data: { value: 'intruder' } }

async function unchanged(task: () => Promise<void>): Promise<void> {
  const revision = await bed.revision()
  await task()
  await turns()
  assert.equal(await bed.revision(), revision, 'the store has changed')
}

const OBJECT_PATHS = [
  MAPS,
  `${MAPS}/early`,
  `${PODS}/one`,
  `${PODS}/one/status`,
  `${PODS}/one/eviction`,
  `${PODS}/one/binding`,
  `${PODS}/one/ephemeralcontainers`,
  `${PODS}/one/resize`,
  `${PODS}/one/exec?command=ls`,
  `${PODS}/one/attach`,
  `${PODS}/one/portforward`,
  `${PODS}/one/proxy/x/y`,
  '/api/v1/namespaces/default/bindings',
  '/api/v1/namespaces/default/services/kubernetes/proxy/',
  '/api/v1/namespaces/default/serviceaccounts/default/token',
  '/api/v1/namespaces/default/finalize',
  '/api/v1/namespaces/default/status',
  '/api/v1/namespaces/default',
  '/api/v1/namespaces',
  '/api/v1/nodes/n/proxy/metrics',
  '/api/v1/watch/pods',
  '/api/v1/proxy/nodes/n/x',
  '/apis/apps/v1/namespaces/default/deployments/web/scale',
  '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  '/apis/authentication.k8s.io/v1/tokenreviews',
  '/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval',
  '/apis/unknown.example.com/v1/things',
  '/api',
  '/apis',
  '/healthz',
  '/metrics',
  '/debug/flags/v',
  '/',
  '',
]

/** Spellings of a moment before a path; `PATH` is the path. */
const PREFIXES = [
  '/past/-1sPATH',
  '/past/-1s/PATH',
  '/past/-1s/past/-1sPATH',
  '/past/-1s/./PATH',
  '/past/-1s/..PATH',
  '/past/-1s/../..PATH',
  '/past/-1s%2FPATH',
  '/past/-1s%2fpast%2f-1sPATH',
  '/past/%2DPATH',
  '/past/%2D1sPATH',
  '/past/-1%73PATH',
  '/past/%2e%2ePATH',
  '/past/..PATH',
  '/past/.PATH',
  '/past/%00PATH',
  '/past/%PATH',
  '/past/%ff%fePATH',
  '/past/%252FPATH',
  '/past//PATH',
  '/past/ PATH',
  '/past/%20PATH',
  '/past/-1s;x=1PATH',
  '/past/-1s#PATH',
  '/past/-1s%3Fx=1PATH',
  '/past/-1s@0xPATH',
  '/past/-1s@999999xPATH',
  '/past/rv:1PATH',
  '/past/rv:0PATH',
  '/past/rv:-1PATH',
  '/past/rv:1e3PATH',
  '/past/rv:999999999999999PATH',
  '/past/rv:9999999999999999PATH',
  `/past/${'-1s'.repeat(2000)}PATH`,
  `/past/2026-01-01T00:00:01.${'0'.repeat(5000)}ZPATH`,
  '//pastPATH',
  '//past//-1sPATH',
  '/PAST/-1sPATH',
  '/Past/-1sPATH',
  '/%70ast/-1sPATH',
  '/past%2F-1sPATH',
  '/pastPATH',
  '/past/PATH',
  '/past',
  '/./past/-1sPATH',
  '/x/../past/-1sPATH',
  '/apis/past/-1sPATH',
  '/past/-9s..PATH',
  '/past/-9s..-1sPATH',
  '/past/rv:1..rv:2PATH',
  '/past/-9s..-1s..-0sPATH',
  '/past/-9s..%2FPATH',
  '/past/...PATH',
  '/past/constructorPATH',
  '/past/__proto__PATH',
]

describe('paths of the past', () => {
  it('change nothing with any method', async (t) => {
    let requests = 0
    await unchanged(async () => {
      for (const prefix of PREFIXES) {
        for (const path of OBJECT_PATHS) {
          const method = METHODS[requests % METHODS.length] as string
          const { status, text } = await bed.send(prefix.replace('PATH', path), { method, body: BODY })
          assert.ok(status >= 400 && status < 500, `${method} ${prefix} ${path}: ${status} ${text.slice(0, 200)}`)
          requests++
        }
      }
    })
    t.diagnostic(`${requests} requests`)
  })

  it('refuse each method on each path of a moment', async (t) => {
    let requests = 0
    await unchanged(async () => {
      for (const path of OBJECT_PATHS) {
        for (const method of METHODS) {
          const { status } = await bed.send(past(early, path), { method, body: BODY })
          assert.equal(status, 405, `${method} ${path}`)
          requests++
        }
      }
    })
    t.diagnostic(`${requests} requests`)
  })

  it('never show a present object', async () => {
    const writes = ['late', 'new']
    await unchanged(async () => {
      for (const prefix of PREFIXES.filter((text) => text.includes('past') && !/-1|-9|%2D/i.test(text))) {
        for (const path of [MAPS, `${MAPS}/late`, `${MAPS}/early`]) {
          const { text } = await bed.send(prefix.replace('PATH', path))
          for (const write of writes)
            assert.ok(!text.includes(`"${write}"`) || text.includes('not found'), `${prefix} ${path}`)
        }
      }
    })
    assert.equal((await bed.send(past(early, `${MAPS}/late`))).status, 404)
    assert.equal((await bed.send(past(early, `${MAPS}/early`))).json().data.value, 'old')
  })

  it('mean the same when sent over HTTP/1.1 and HTTP/2 without normalization', async (t) => {
    const codes = new Map<string, number>()
    await unchanged(async () => {
      for (const prefix of PREFIXES.filter((text) => !/[ #]/.test(text))) {
        const path = prefix.replace('PATH', `${MAPS}/early`)
        for (const method of ['DELETE', 'PUT', 'POST']) {
          for (const send of [overHttp1, overHttp2]) {
            const status = await send(method, path)
            assert.ok(status >= 400 && status < 500, `${method} ${path.slice(0, 200)}: ${status}`)
            codes.set(String(status), (codes.get(String(status)) ?? 0) + 1)
          }
        }
      }
    })
    t.diagnostic(JSON.stringify([...codes]))
  })
})

function overHttp1(method: string, path: string): Promise<number> {
  const headers = { authorization: 'Bearer admin', 'content-type': 'application/json' }
  const { port } = new URL(bed.plane.url)
  return new Promise((resolve, reject) => {
    const sent = httpsRequest(
      { host: '127.0.0.1', port, path, method, headers, rejectUnauthorized: false },
      (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.statusCode ?? 0))
      },
    )
    sent.on('error', reject)
    sent.end(JSON.stringify(BODY))
  })
}

function overHttp2(method: string, path: string): Promise<number> {
  const session = connectHttp2(bed.plane.url, { rejectUnauthorized: false })
  return new Promise<number>((resolve, reject) => {
    session.on('error', reject)
    const headers = {
      ':method': method,
      ':path': path,
      authorization: 'Bearer admin',
      'content-type': 'application/json',
    }
    const stream = session.request(headers, { endStream: false })
    stream.on('error', reject)
    stream.on('response', (answer) => resolve(Number(answer[':status'])))
    stream.resume()
    stream.end(JSON.stringify(BODY))
  }).finally(() => session.close())
}

describe('users of the past', () => {
  const as = (name: string, groups: readonly string[] = ['system:authenticated']): Json => ({
    as: { name, groups, uid: '', extra: {} },
  })

  async function grant(name: string, rules: readonly object[]): Promise<void> {
    await bed.must('POST', `${RBAC}/clusterroles`, { metadata: { name }, rules })
    const apiGroup = 'rbac.authorization.k8s.io'
    const subjects = [{ kind: 'User', apiGroup, name }]
    const roleRef = { apiGroup, kind: 'ClusterRole', name }
    await bed.must('POST', `${RBAC}/clusterrolebindings`, { metadata: { name }, roleRef, subjects })
    await bed.settle()
  }

  const MOMENTS = { apiGroups: ['hyperkube.io'], resources: ['moments'], verbs: ['get'] }
  const READ = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }
  const IMPERSONATE = { apiGroups: [''], resources: ['users', 'groups'], verbs: ['impersonate'] }

  it('that are impersonated have the permissions of the impersonated user', async () => {
    await grant('reader', [READ])
    await grant('historian', [READ, MOMENTS])
    await grant('helper', [IMPERSONATE])
    await grant('outsider', [READ, MOMENTS])
    const path = past(early, `${MAPS}/early`)
    const codes = async (asker: Json): Promise<number[]> => {
      const names = ['reader', 'historian', 'helper']
      const replies = names.map((name) => bed.send(path, { ...asker, headers: { 'impersonate-user': name } }))
      return (await Promise.all(replies)).map(({ status }) => status)
    }
    await unchanged(async () => {
      assert.deepEqual(await codes({}), [403, 200, 403], 'by an administrator')
      assert.deepEqual(await codes(as('helper')), [403, 200, 403], 'by a user who may impersonate')
      assert.deepEqual(await codes(as('outsider')), [403, 403, 403], 'by a user who may not')
    })
  })

  it('cannot write as an impersonated user', async () => {
    await unchanged(async () => {
      for (const method of METHODS) {
        const headers = { 'impersonate-user': 'historian', 'impersonate-group': 'system:masters' }
        const { status } = await bed.send(past(early, `${MAPS}/early`), { method, body: BODY, headers })
        assert.equal(status, 405, method)
      }
    })
  })

  it('without credentials see nothing', async () => {
    const anonymous = as('system:anonymous', ['system:unauthenticated'])
    for (const path of [MAPS, '/api', '/apis', '/version', '/healthz', '/openapi/v2', '/livez', '']) {
      const { status } = await bed.send(past(early, path), anonymous)
      assert.equal(status, 403, path)
    }
  })

  it('need the present permission also for discovery', async () => {
    for (const path of ['/api', '/apis', '/openapi/v3', '/version']) {
      assert.equal((await bed.send(past(early, path), as('reader'))).status, 403, path)
      assert.equal((await bed.send(past(early, path), as('historian'))).status, 200, path)
    }
  })

  it('cannot select changes: an authorizer may allow only the selection', async () => {
    const range = `${early}..`
    assert.equal((await bed.send(past(range, `${MAPS}?fieldSelector=metadata.name=early`))).status, 200)
    const selectors = [
      'labelSelector=a=b',
      'fieldSelector=metadata.name=early,metadata.namespace=x',
      'fieldSelector=a=b',
    ]
    for (const selector of selectors) {
      assert.equal((await bed.send(past(range, `${MAPS}?${selector}`))).status, 400, selector)
    }
  })

  it('reach no aggregated server', async () => {
    await bed.must('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
      metadata: { name: 'v1.far.example.com' },
      spec: {
        group: 'far.example.com',
        version: 'v1',
        groupPriorityMinimum: 1000,
        versionPriority: 15,
        insecureSkipTLSVerify: true,
        service: { namespace: 'default', name: 'far' },
      },
    })
    await bed.clock.advance(1000)
    const path = '/apis/far.example.com/v1/namespaces/default/things'
    assert.equal((await bed.send(path)).status, 503)
    for (const moment of [early, '-0s']) assert.equal((await bed.send(past(moment, path))).status, 404, moment)
    await unchanged(async () => {
      for (const method of METHODS) assert.equal((await bed.send(past('-0s', path), { method })).status, 405, method)
    })
  })
})
