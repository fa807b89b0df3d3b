/**
 * Starts a registry with authentication for tests, with pods with and without pull secrets, and a credential provider.
 */
import { createHash } from 'node:crypto'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { tarArchive } from '#lib/files/tar-write.ts'

import { type Guard, type ImageRegistry, startRegistry } from '../../images/registry.ts'
import type { KubeletBed } from '../../upstream/kubelet-bed.ts'
import { busyboxConfig, busyboxLayer } from './containerd-bed.ts'

const PODS = '/api/v1/namespaces/default/pods'
const SECRETS = '/api/v1/namespaces/default/secrets'
const PATIENCE_MS = 90_000

export const GUARD: Guard = { scheme: 'Basic', username: 'reader', password: 'hush:hush' }

/** Starts a registry with the images `host/plain/busybox:1` and `host/asked/busybox:1`. */
export async function startPrivateRegistry(folder: string, guard: Guard): Promise<ImageRegistry> {
  const layer = busyboxLayer()
  const hex = createHash('sha256').update(layer).digest('hex')
  const names = ['plain', 'asked'].map((name) => `registry/${name}/busybox:1`)
  const manifest = [{ Config: 'c.json', RepoTags: names, Layers: [`${hex}.tar`] }]
  const archive = join(folder, 'private.tar')
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
  const entries = [
    { name: `${hex}.tar`, mode: 0o644, content: layer },
    { name: 'c.json', mode: 0o644, content: json(busyboxConfig(`sha256:${hex}`)) },
    { name: 'manifest.json', mode: 0o644, content: json(manifest) },
  ]
  await writeFile(archive, tarArchive(entries))
  return startRegistry([archive], guard)
}

export const hostOf = ({ url }: ImageRegistry): string => new URL(url).host

/** Kubelet flags that configure the credential provider for `host/asked`. */
export async function credentialFlags(folder: string, host: string, { username, password }: Guard): Promise<string[]> {
  const binDir = join(folder, 'credentials')
  await mkdir(binDir, { recursive: true })
  const answer = {
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Registry',
    cacheDuration: '0s',
    auth: { [host]: { username, password } },
  }
  await writeFile(join(binDir, 'answer.json'), JSON.stringify(answer))
  const program = join(binDir, 'asker')
  await writeFile(program, '#!/bin/sh\ncat "${0%/*}/answer.json"\n')
  await chmod(program, 0o755)
  const config = join(binDir, 'config.json')
  const provider = {
    name: 'asker',
    matchImages: [`${host}/asked`],
    defaultCacheDuration: '0s',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
  }
  const kind = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig' }
  await writeFile(config, JSON.stringify({ ...kind, providers: [provider] }))
  return [`--image-credential-provider-config=${config}`, `--image-credential-provider-bin-dir=${binDir}`]
}

/** Credentials for everything on that host. */
export async function makeSecret(bed: KubeletBed, name: string, host: string, password: string): Promise<void> {
  const auths = { [host]: { username: GUARD.username, password } }
  await bed
    .ask('POST', SECRETS, {
      metadata: { name },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
    })
    .catch((error: Error) => {
      if (!error.message.includes('AlreadyExists')) throw error
    })
}

/** Credentials of a pod for a pull. */
export interface Having {
  readonly secrets?: readonly string[]
  readonly policy?: 'Always' | 'IfNotPresent' | 'Never'
}

/** Pulls even if the image is present. */
export async function makePuller(
  bed: KubeletBed,
  name: string,
  image: string,
  { secrets = [], policy: imagePullPolicy = 'Always' }: Having = {},
): Promise<void> {
  const container = { name: 'c', image, imagePullPolicy, command: ['sleep', '3600'] }
  await bed.ask('POST', PODS, {
    metadata: { name },
    spec: {
      nodeName: bed.node,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      imagePullSecrets: secrets.map((secret) => ({ name: secret })),
      containers: [container],
    },
  })
}

interface Waiting {
  readonly reason?: string
  readonly message?: string
}

/** The state of the container: `running`, or its waiting reason once it is one of `reasons`. */
export async function stateOf(bed: KubeletBed, name: string, reasons: readonly string[]): Promise<Waiting | 'running'> {
  let last: unknown
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 100) {
    const { status } = await bed.ask<Pod>('GET', `${PODS}/${name}`)
    const { running, waiting } = status.containerStatuses?.[0]?.state ?? {}
    if (running !== undefined) return 'running'
    if (waiting?.reason !== undefined && reasons.includes(waiting.reason)) return waiting
    last = status
    await sleep(realClock, 100)
  }
  throw new Error(`${name} did not come to ${reasons.join()}: ${JSON.stringify(last)}`)
}

/** Events of a pod about its image: `Failed: Error: ErrImagePull`. */
export async function saidOf(bed: KubeletBed, name: string): Promise<string[]> {
  interface Said {
    readonly reason: string
    readonly message: string
    readonly involvedObject: { readonly uid?: string }
  }
  const { items } = await bed.ask<{ items: Said[] }>('GET', '/api/v1/namespaces/default/events')
  const { metadata } = await bed.ask<Pod>('GET', `${PODS}/${name}`)
  const own = items.filter(({ involvedObject }) => involvedObject.uid === metadata.uid)
  return [...new Set(own.map(({ reason, message }) => `${reason}: ${message}`))].sort()
}

/** Waits for an event that begins with the text. */
export async function untilSaid(bed: KubeletBed, name: string, start: string): Promise<void> {
  let said: string[] = []
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 200) {
    said = await saidOf(bed, name)
    if (said.some((line) => line.startsWith(start))) return
    await sleep(realClock, 200)
  }
  throw new Error(`Nobody said of ${name} ${start}, but\n${said.join('\n')}`)
}

export async function removePuller(bed: KubeletBed, name: string): Promise<void> {
  await bed.ask('DELETE', `${PODS}/${name}?gracePeriodSeconds=0`)
}
