/** Tests the requests of debug containers and debug pods, and the words while they start. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { containerStart, runningContainers } from '../terminal/running-containers.ts'
import { actionsFor } from './actions.ts'
import { debugInPod, debugOnNode, debugTargets } from './debug-plan.ts'

const PODS = { group: '', version: 'v1', plural: 'pods' }
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { containers: [{ name: 'app' }], ephemeralContainers: [{ name: 'debugger-x' }] },
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'app', state: { running: {} } }],
    ephemeralContainerStatuses: [
      { name: 'debugger-x', state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } } },
    ],
  },
}
const options = { image: 'busybox', suffix: 'abcde' }

describe('debug containers', () => {
  it('are added to a pod by a merge, beside a container whose processes they see', () => {
    const { request, container } = debugInPod({ kind: PODS, object: pod }, { ...options, profile: 'general' }, 'app')
    assert.equal(container, 'debugger-abcde')
    assert.equal(request.path, '/api/v1/namespaces/shop/pods/web/ephemeralcontainers')
    const { spec } = request.body as { spec: { ephemeralContainers: readonly object[] } }
    assert.deepEqual(spec.ephemeralContainers, [
      {
        name: 'debugger-abcde',
        image: 'busybox',
        stdin: true,
        tty: true,
        terminationMessagePolicy: 'File',
        securityContext: { capabilities: { add: ['SYS_PTRACE'] } },
        targetContainerName: 'app',
      },
    ])
  })

  it('have no rights in restricted namespaces', () => {
    const { request } = debugInPod({ kind: PODS, object: pod }, { ...options, profile: 'restricted' }, '')
    assert.match(JSON.stringify(request.body), /"runAsNonRoot":true,"allowPrivilegeEscalation":false/)
    assert.doesNotMatch(JSON.stringify(request.body), /targetContainerName/)
  })

  it('are offered for pods that run and that the API server may change', () => {
    const offered = (object: object): boolean => actionsFor(object as never).some(({ name }) => name === 'debug-pod')
    const annotations = { 'kubernetes.io/config.mirror': 'x' }
    assert.deepEqual(
      [pod, { ...pod, status: { phase: 'Pending' } }, { ...pod, metadata: { ...pod.metadata, annotations } }].map(
        offered,
      ),
      [true, false, false],
    )
    assert.deepEqual(debugTargets(pod as never), ['app'])
  })

  it('say why they do not run yet', () => {
    assert.deepEqual(runningContainers(pod as never), ['app'])
    const start = containerStart(pod as never, 'debugger-x')
    assert.deepEqual(start, { title: 'Container debugger-x is starting', text: 'ErrImagePull: no such image' })
    assert.match(containerStart(pod as never, 'other').title, /has no container other/)
  })
})

describe('debug pods of nodes', () => {
  it('have a name that fits, and tolerate all taints', () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: `n${'x'.repeat(252)}` } }
    const { request, pod: name } = debugOnNode({ kind: PODS, object: node }, options, 'default')
    assert.ok(name.length <= 253)
    assert.match(JSON.stringify(request.body), /"tolerations":\[\{"operator":"Exists"\}\]/)
    assert.equal(request.path, '/api/v1/namespaces/default/pods')
  })
})
