/** Tests audit flags of kube-apiserver: files, standard output, a webhook, and a full disk. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, describe, it } from 'node:test'

import type { Audit } from '#apiserver/audit/audit.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { openAudit } from '#control-plane/audit.ts'
import { APISERVER_FLAGS, type Settings } from '#control-plane/flags/flags.ts'
import { realClock } from '#lib/clock.ts'
import { defineFlags, parseFlags } from '#lib/flags/flags.ts'
import type { Peer } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import type { Logger } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

const set = defineFlags(APISERVER_FLAGS)
const flagsOf = (args: readonly string[]): Settings => parseFlags(set, args).values as unknown as Settings

describe('audit flags of kube-apiserver', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-audit-flags-'))
  after(() => rmSync(dir, { recursive: true, force: true }))

  interface Opened {
    readonly audit: Audit | undefined
    readonly out: () => string
    readonly lines: string[]
    readonly metrics: ServerMeters
  }

  async function open(args: string, files: Readonly<Record<string, string>> = {}): Promise<Opened> {
    let out = ''
    const lines: string[] = []
    const log: Logger = {
      info: (message) => void lines.push(message),
      error(error, message, values = {}) {
        const { events } = values as { events: () => string }
        lines.push(`${message}: ${(error as Error).message} ${events()}`)
      },
      v: () => log,
      withValues: () => log,
      withName: () => log,
    }
    const metrics = createServerMeters()
    const stdout = new Writable({
      write(chunk: Buffer, _encoding, done) {
        out += chunk.toString()
        done()
      },
    })
    const known: Readonly<Record<string, string>> = {
      'all.yaml': '{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}',
      ...files,
    }
    const readFile = (path: string): Promise<string> =>
      Object.hasOwn(known, path)
        ? Promise.resolve(known[path] ?? '')
        : Promise.reject(Object.assign(new Error('gone'), { code: 'ENOENT' }))
    const settings = flagsOf(args.split(' '))
    const tools = { settings, clock: realClock, random: secureRandom, log, metrics, stdout, readFile, cwd: dir }
    const audit = await openAudit({ ...tools, closing: new AsyncDisposableStack() })
    return { audit, out: () => out, lines, metrics }
  }

  const jane: User = { name: 'jane', uid: '', groups: [], extra: {} }

  /** A write that is answered. */
  async function request({ audit }: Opened): Promise<void> {
    const path = '/api/v1/namespaces/a/pods'
    const trail = audit?.begin({
      exchange: { path, headers: {}, peer: { address: '192.0.2.1' } as Peer },
      info: requestInfoOf('POST', path, undefined),
      auditId: 'id-1',
    })
    await trail?.received(jane)
    await trail?.answered({ status: 201, contentType: 'text/plain', body: '' })
  }

  it('write no events without a policy or a backend', async () => {
    const opened = await open('--audit-log-path=-')
    assert.equal(opened.audit, undefined)
    assert.deepEqual(opened.lines, ['No audit policy file provided, no events will be recorded for log backend'])
    assert.equal((await open('--audit-policy-file=all.yaml')).audit, undefined)
  })

  it('are refused with a missing or invalid policy', async () => {
    await assert.rejects(open('--audit-policy-file=none.yaml'), {
      name: 'ProgramError',
      message:
        'loading audit policy file: failed to read file path "none.yaml": open none.yaml: no such file or directory',
    })
    const files = { 'empty.yaml': 'apiVersion: audit.k8s.io/v1\nkind: Policy\n' }
    await assert.rejects(open('--audit-policy-file=empty.yaml', files), {
      message: 'loading audit policy file: loaded illegal policy with 0 rules: from file empty.yaml',
    })
  })

  it('write events to standard output in both formats', async () => {
    const json = await open('--audit-policy-file=all.yaml --audit-log-path=-')
    await request(json)
    assert.deepEqual(json.out().match(/"stage":"\w+"/g), ['"stage":"RequestReceived"', '"stage":"ResponseComplete"'])
    const legacy = await open('--audit-policy-file=all.yaml --audit-log-path=- --audit-log-format=legacy')
    await request(legacy)
    assert.match(legacy.out(), /AUDIT: id="id-1" stage="ResponseComplete" ip="192\.0\.2\.1" .* response="201"\n$/)
  })

  for (const mode of ['batch', 'blocking', 'blocking-strict']) {
    it(`write events to a file in mode ${mode}`, async () => {
      const opened = await open(`--audit-policy-file=all.yaml --audit-log-path=${mode}.log --audit-log-mode=${mode}`)
      await request(opened)
      if (mode === 'batch') await opened.audit?.close()
      assert.equal(readFileSync(join(dir, `${mode}.log`), 'utf8').split('\n').length, 3)
      if (mode !== 'batch') await opened.audit?.close()
    })
  }

  it('report lost events when the disk is full, and requests continue', async () => {
    const opened = await open(
      '--audit-policy-file=all.yaml --audit-log-path=../../../../../../dev/full --audit-log-maxsize=0',
    )
    await request(opened)
    const lost = opened.lines.filter((line) => line.startsWith('Error'))
    assert.equal(lost.length, 2)
    assert.match(
      lost[0] ?? '',
      /^Error in audit plugin 'log' affecting 1 audit events: ENOSPC.* AUDIT: id="id-1" stage="RequestReceived"/,
    )
    assert.match(opened.metrics.registry.render(), /apiserver_audit_error_total\{plugin="log"} 2\n/)
    await opened.audit?.close()
  })

  it('fail requests in mode blocking-strict when the disk is full', async () => {
    const opened = await open(
      '--audit-policy-file=all.yaml --audit-log-path=../../../../../../dev/full --audit-log-maxsize=0 --audit-log-mode=blocking-strict',
    )
    await assert.rejects(request(opened), { message: 'Internal error occurred: failed to store audit event' })
    assert.match(opened.metrics.registry.render(), /apiserver_audit_requests_rejected_total 1\n/)
    await opened.audit?.close()
  })

  it('send events to a webhook', async () => {
    const bodies: string[] = []
    const server = createHttpServer({
      clock: realClock,
      async serve(exchange) {
        bodies.push(`${exchange.headers.authorization} ${(await exchange.readBody(1 << 20)).toString()}`)
        exchange.respond(200, [], '')
      },
    })
    const bound = await server.listen({ host: '127.0.0.1', port: 0 })
    assert.ok('port' in bound)
    const kubeconfig = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${bound.port}/audit` } }],
      users: [{ name: 'u', user: { token: 't' } }],
    }
    const args =
      '--audit-policy-file=all.yaml --audit-webhook-config-file=hook.conf --audit-webhook-truncate-enabled=true'
    const opened = await open(args, { 'hook.conf': JSON.stringify(kubeconfig) })
    assert.deepEqual(opened.lines, ['Using audit backend: truncate<buffered<webhook>>'])
    await request(opened)
    await opened.audit?.close()
    await server.drain(0)
    assert.equal(bodies.length, 1)
    assert.match(
      bodies[0] ?? '',
      /^Bearer t \{"kind":"EventList","apiVersion":"audit\.k8s\.io\/v1","metadata":\{},"items":\[\{"level":/,
    )
  })
})
