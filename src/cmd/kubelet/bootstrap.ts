/**
 * TLS bootstrap of a kubelet: requests a client certificate for its node with the credentials of a bootstrap
 * kubeconfig, and writes the permanent kubeconfig.
 */
import { mkdir, readFile as readBytes, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { type Connection, openConnection } from '#client/connection/connection.ts'
import { requestCertificate } from '#kubelet/certificates/certificate-request.ts'
import { CertificateStore } from '#kubelet/certificates/certificate-store.ts'
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { ProgramError } from '#lib/program.ts'
import { isExpired, parseBundle } from '#lib/x509/certificate.ts'
import { generateKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { KUBELET_CLIENT_SIGNER } from '#model/certificate-requests.ts'
import { tlsOf } from '#model/kubeconfig/credentials.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

import type { KubeletProgram } from './program.ts'

export const CLIENT_STORE = 'kubelet-client'

/** The private key is kept until the certificate arrives, so that a restarted kubelet continues the same request. */
const KEY_FILE = 'kubelet-client.key.tmp'

/** The time limit for the approval. */
const WAIT_MS = 3_600_000
const BACKOFF = { baseMs: 1000, factor: 2, capMs: 32_000, jitter: 0.1 }

/** Resolves when a usable kubeconfig exists, at once if it already does. Throws ProgramError. */
export async function bootstrap(program: KubeletProgram, kubeconfig: string, signal: AbortSignal): Promise<void> {
  const { settings, clock, log, node } = program
  if (await isUsable(program, kubeconfig)) {
    log.v(2)?.info('Kubeconfig exists and is valid, skipping bootstrap', { path: kubeconfig })
    return
  }
  log.info('Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file')
  const file = settings['bootstrap-kubeconfig']
  const config = await readConfig(program, file).catch((cause: Error) => {
    const why = `unable to load bootstrap kubeconfig: ${cause.message}`
    throw new ProgramError(`failed to run Kubelet: ${why}`, { cause })
  })
  const store = new CertificateStore(resolve(program.cwd, settings['cert-dir']), CLIENT_STORE, clock)
  const connection = await connect(program, config)
  try {
    const key = await keyOf(program)
    const issued = await requestUntilIssued(program, connection, { key, signal })
    await store.update(issued, keyToPem(key))
  } finally {
    connection.close()
  }
  await writeKubeconfig(kubeconfig, config, store.currentPath)
  await rm(join(resolve(program.cwd, settings['cert-dir']), KEY_FILE), { force: true })
  log.info('Received client certificate', { node, kubeconfig })
}

export async function readConfig({ env, cwd, readFile, log }: KubeletProgram, file: string): Promise<ClientConfig> {
  return programConfig({ kubeconfig: file, master: '' }, { env, cwd, readFile, warn: (text) => log.info(text) })
}

export async function connect(
  { clock, readFile, env, log }: KubeletProgram,
  config: ClientConfig,
): Promise<Connection> {
  const onError = (error: unknown): void => log.error(error, 'Failed to refresh client credentials')
  return openConnection(config, { clock, readFile, env, onError })
}

/** True if the kubeconfig has a client certificate that has not expired. */
async function isUsable(program: KubeletProgram, kubeconfig: string): Promise<boolean> {
  const { readFile, clock, log } = program
  const isThere = await readFile(kubeconfig).then(
    () => true,
    () => false,
  )
  if (!isThere) return false
  try {
    const { certificate = '' } = await tlsOf(await readConfig(program, kubeconfig), readFile)
    const over = parseBundle(certificate).find((one) => isExpired(one, clock.now()))
    if (over === undefined) return true
    log.info('Client certificate in the kubeconfig has expired', { kubeconfig, notAfter: new Date(over.notAfterMs) })
  } catch (error) {
    log.error(error, 'Failed to read the kubeconfig', { kubeconfig })
  }
  return false
}

type Key = Awaited<ReturnType<typeof generateKey>>

async function keyOf({ settings, cwd, clock }: KubeletProgram): Promise<Key> {
  const folder = resolve(cwd, settings['cert-dir'])
  const file = join(folder, KEY_FILE)
  try {
    return parsePrivateKey(await readBytes(file, 'utf8'))
  } catch {
    const key = await clock.during(generateKey())
    await mkdir(folder, { recursive: true, mode: 0o755 })
    await writeFileAtomically(file, keyToPem(key), { mode: 0o600 })
    return key
  }
}

/** Waits for a server that is not reachable yet. A denied request is repeated only if certificates rotate. */
async function requestUntilIssued(
  program: KubeletProgram,
  connection: Connection,
  { key, signal }: { readonly key: Key; readonly signal: AbortSignal },
): Promise<string> {
  const { clock, random, log, node, configuration } = program
  const client = new ApiClient({ ...connection, clock, userAgent: userAgent('kubelet') })
  const backoff = createBackoff(random, BACKOFF)
  const certificate = { node, signer: KUBELET_CLIENT_SIGNER, purpose: 'client auth' }
  const isNamed = configuration.rotateCertificates !== true
  for (;;) {
    try {
      return await requestCertificate(certificate, key, { client, random, signal, timeoutMs: WAIT_MS, isNamed })
    } catch (cause) {
      signal.throwIfAborted()
      const { message } = cause as Error
      if (isNamed && /^certificate signing request (?:is denied|failed)/.test(message)) {
        throw new ProgramError(`failed to run Kubelet: ${message}`, { cause })
      }
      log.error(cause, 'Failed while requesting a signed certificate from the control plane')
      await sleep(clock, backoff.next(), signal)
    }
  }
}

async function writeKubeconfig(file: string, { cluster }: ClientConfig, pem: string): Promise<void> {
  const context = { cluster: 'default-cluster', namespace: 'default', user: 'default-auth' }
  const text = stringifyYaml({
    apiVersion: 'v1',
    clusters: [{ cluster, name: context.cluster }],
    contexts: [{ context, name: 'default-context' }],
    'current-context': 'default-context',
    kind: 'Config',
    users: [{ name: context.user, user: { 'client-certificate': pem, 'client-key': pem } }],
  })
  await mkdir(dirname(file), { recursive: true })
  await writeFileAtomically(file, text, { mode: 0o600 })
}
