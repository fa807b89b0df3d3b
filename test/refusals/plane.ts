/** The control plane as `kube-apiserver` starts it with its defaults, in this process: memory, plain HTTP, one token. */
import { createGates } from '#control-plane/flags/gates.ts'
import { startControlPlane } from '#control-plane/parts.ts'
import { realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'

export interface Plane extends AsyncDisposable {
  readonly url: string
  readonly token: string
}

const ISSUER = 'https://kubernetes.default.svc.cluster.local'

export async function startPlane(): Promise<Plane> {
  const random = createSeededRandom(1)
  const backend = createMemoryBackend({ clock: realClock, random })
  const server = await startControlPlane({
    backend,
    atRest: createAtRest(NO_ENCRYPTION, random),
    clock: realClock,
    random,
    log: createLog({ clock: realClock, stream: process.stderr }).logger,
    clientAuthorities: '',
    serviceAccountKey: keyToPem(createKey()),
    issuer: ISSUER,
    serviceCidr: '10.0.0.0/24',
    authorizationModes: ['Node', 'RBAC'],
    isEnabled: createGates(new Map()),
    allowPrivileged: true,
    versionInfo: { gitVersion: 'v1.36.4-test' },
    authentication: { staticTokens: 'token,admin,admin,system:masters' },
    publishes: false,
  })
  const address = await server.listen({ host: '127.0.0.1', port: 0 }, undefined)
  return {
    url: `http://127.0.0.1:${'port' in address ? address.port : 0}`,
    token: 'token',
    async [Symbol.asyncDispose]() {
      await server.stop(1000)
      await backend.close()
    },
  }
}
