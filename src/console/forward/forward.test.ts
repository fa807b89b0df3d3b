/** Tests which ports can be forwarded, and the command for kubectl. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { forwardedPorts, kubectlCommand } from './forwarded-ports.ts'

const ports = [{ containerPort: 80, name: 'http' }, { containerPort: 53, protocol: 'UDP' }, { containerPort: 5432 }]
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    containers: [
      { name: 'app', ports },
      { name: 'side', ports: [{ containerPort: 80, name: 'again' }] },
    ],
  },
  status: { phase: 'Running' },
}
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { selector: { app: 'web' }, ports: [{ port: 443, targetPort: 'https' }] },
}

describe('ports that can be forwarded', () => {
  it('are the TCP ports of running pods, each once', () => {
    assert.deepEqual(
      forwardedPorts(pod).map(({ port }) => port),
      [80, 5432],
    )
    assert.deepEqual(forwardedPorts({ ...pod, status: { phase: 'Pending' } } as never), [])
    assert.deepEqual(forwardedPorts({ ...pod, kind: 'Deployment' }), [])
  })

  it('are those of Services that select pods', () => {
    assert.deepEqual(forwardedPorts(service), [{ port: 443, name: '' }])
    assert.deepEqual(forwardedPorts({ ...service, spec: { ...service.spec, selector: {} } } as never), [])
    assert.deepEqual(forwardedPorts({ ...service, spec: { ...service.spec, type: 'ExternalName' } } as never), [])
  })
})

describe('the command for kubectl', () => {
  it('listens where programs of people may, and quotes the file', () => {
    const command = (port: number, file: string): string => kubectlCommand(service, { port, name: '' }, file)
    assert.equal(
      command(443, "My 'prod'.kubeconfig"),
      String.raw`kubectl --kubeconfig 'My '\''prod'\''.kubeconfig' port-forward -n shop service/web 8443:443`,
    )
    assert.match(command(8080, 'a.kubeconfig'), /--kubeconfig a\.kubeconfig .* 8080$/)
  })
})
