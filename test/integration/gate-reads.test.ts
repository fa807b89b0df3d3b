/**
 * Checks that programs read every feature gate that a table lists as supported, by recording the reads of a running
 * program.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { WORKING } from '#component/flags/gates.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { createAsker } from '../refusals/asking.ts'
import { everyCase } from '../refusals/index.ts'

type Json = Record<string, unknown>

const CORE = '/api/v1/namespaces/default'
const NODE = { 'impersonate-user': 'system:node:n', 'impersonate-group': 'system:nodes' }
const pod = (more: Json = {}): Json => ({
  metadata: { name: 'p' },
  spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }], ...more },
})

const job = (cpu: string): Json => ({
  metadata: { name: 'j' },
  spec: {
    suspend: true,
    template: {
      spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }] },
    },
  },
})

const claim = {
  metadata: { name: 'c' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'x', namespace: 'kube-system' },
  },
}

const request = {
  metadata: { name: 'r' },
  spec: { request: '', signerName: 'kubernetes.io/kubelet-serving', usages: [] },
}

/** The status of a node whose kubelet port is closed. */
const NODE_STATUS = {
  status: {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: 1 } },
  },
}

/** Requests that read gates which no refused object does. Their answers do not matter. */
const FURTHER: readonly (readonly [method: string, path: string, body?: unknown, headers?: Record<string, string>])[] =
  [
    ['POST', '/api/v1/nodes', { metadata: { name: 'n' } }],
    ['PATCH', '/api/v1/nodes/n/status', NODE_STATUS, { 'content-type': 'application/merge-patch+json' }],
    ['POST', `${CORE}/serviceaccounts`, { metadata: { name: 'default' } }],
    ['POST', `${CORE}/pods`, pod()],
    ['GET', `${CORE}/pods/p/log?stream=Stdout`],
    ['POST', `${CORE}/persistentvolumeclaims`, claim],
    ['POST', '/apis/batch/v1/namespaces/default/jobs', job('1')],
    ['PUT', '/apis/batch/v1/namespaces/default/jobs/j', job('2')],
    ['POST', '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups', { metadata: { name: 'g' }, spec: {} }],
    ['POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', request, NODE],
    ['GET', `${CORE}/serviceaccounts/default`, undefined, NODE],
  ]

async function exercise(plane: ControlPlane): Promise<void> {
  for (const [method, path, body, headers] of FURTHER) await plane.request(method, path, body, headers)
  const { metadata } = (await plane.request('GET', `${CORE}/pods/p`)).json() as { metadata: Json }
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: metadata['uid'] }
  await plane.request('POST', `${CORE}/serviceaccounts/default/token`, { spec: { boundObjectRef } }, NODE)
  await openTerminal(plane)
  const asker = createAsker({ url: plane.url, token: plane.token, clock: realClock })
  for (const cases of everyCase) {
    await asker.askValid(cases)
    for (const trial of [...cases.refused, ...(cases.taken ?? [])]) await asker.ask(cases, trial)
  }
  await asker.close()
}

/** Asks for a stream to a pod; no kubelet answers. */
async function openTerminal({ url, ca, token }: ControlPlane): Promise<void> {
  const client = createHttpClient({ clock: realClock, tls: { ca } })
  const headers = {
    authorization: `Bearer ${token}`,
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-protocol': 'v5.channel.k8s.io',
  }
  const path = `${CORE}/pods/p/exec?command=a&stdout=true`
  await client.upgrade({ method: 'GET', url: url + path, headers }).catch(() => undefined)
  client.close()
}

describe('kube-apiserver', () => {
  it('reads every feature gate that its table lists as working', async () => {
    const read = new Set<string>()
    const settings = {
      'feature-gates': new Map([
        ['AllAlpha', true],
        ['AllBeta', true],
      ]),
      'runtime-config': new Map([['api/all', 'true']]),
    }
    await using plane = await startControlPlane({ onGateRead: (gate) => read.add(gate), settings })
    await exercise(plane)
    assert.deepEqual(
      WORKING.filter((gate) => !read.has(gate)),
      [],
    )
  })
})
