/**
 * More events for the `hyperkube build` test: images without a registry, policies that are enabled and disabled,
 * snapshots in S3.
 */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { pauseArchitecture } from '#containerd/pause-image.ts'
import { pauseProgram } from '#containerd/pause-program.ts'
import { tarArchive } from '#lib/files/tar-write.ts'
import { startS3, TEST_KEYS } from '#provision/s3/s3-server.fixture.ts'

import type { Bed } from './bed.ts'
import { destroyData, killProgram, runIn } from './machines.ts'

function must(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(`It is not so that ${what}`)
}

const IMAGE = 'example.test/quiet:1'

/** As `docker save` writes it: one program that waits. */
function imageArchive(): Buffer {
  const architecture = pauseArchitecture(process.arch)
  const layer = tarArchive([{ name: 'wait', mode: 0o755, content: pauseProgram(architecture) }])
  const digest = createHash('sha256').update(layer).digest('hex')
  const config = {
    architecture,
    os: 'linux',
    config: { Entrypoint: ['/wait'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  const manifest = [{ Config: 'config.json', RepoTags: [IMAGE], Layers: ['layer.tar'] }]
  const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
  return tarArchive([
    { name: 'manifest.json', mode: 0o644, content: text(manifest) },
    { name: 'config.json', mode: 0o644, content: text(config) },
    { name: 'layer.tar', mode: 0o644, content: layer },
  ])
}

/** Pods run of an image that came with `up`, on every node. */
export async function images(bed: Bed): Promise<void> {
  await writeFile(join(bed.options.folder, 'quiet.tar'), imageArchive())
  await bed.write({ top: { image_archives: ['quiet.tar'] } })
  await bed.build('up')
  await bed.isSettled()
  const labels = { app: 'carried' }
  const spec = {
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'quiet', image: IMAGE, imagePullPolicy: 'Never' }],
  }
  const set = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'carried' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  }
  await writeFile(join(bed.options.folder, 'carried.json'), JSON.stringify(set))
  await bed.kubectl('apply', '-f', 'carried.json')
  await bed.kubectl('rollout', 'status', 'daemonset/carried', '--timeout=180s')
  await bed.kubectl('delete', '-f', 'carried.json')
  await bed.write({})
  await bed.build('up')
  await bed.isSettled()
}

const TABLE = ['nft', 'list', 'table', 'inet', 'kube-network-policies'] as const

/** Rules for the pods of a node are there with canal, and gone with flannel alone. */
export async function policies(bed: Bed): Promise<void> {
  const deny = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'alone' },
    spec: { podSelector: { matchLabels: { app: 'quiet' } }, policyTypes: ['Ingress'] },
  }
  await writeFile(join(bed.options.folder, 'alone.json'), JSON.stringify(deny))
  await bed.write({ top: { network: { plugin: 'canal' } } })
  await bed.build('up')
  await bed.kubectl('apply', '-f', 'alone.json')
  const [pod] = (await bed.pods()).values()
  const machine = bed.machine(pod?.node ?? '')
  await bed.until(
    'its node has rules for the pod',
    async () => (await runIn(machine, ...TABLE)).includes('alone'),
    60_000,
  )
  await bed.isSettled()
  await bed.kubectl('delete', '-f', 'alone.json')
  await bed.write({})
  await bed.build('up')
  const left = await runIn(machine, ...TABLE).catch(() => '')
  must(left === '', `rules are gone: ${left}`)
  await bed.isSettled()
}

/** The only copy of a snapshot is in a bucket: it is restored from there. */
export async function bucket(bed: Bed): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const [first] = bed.planes
  const host = (first?.address ?? '').replace(/\d+$/, '1')
  const s3 = await startS3(closing, { host })
  const s3backupconfig = {
    endpoint: s3.endpoint,
    bucket_name: 'copies',
    folder: 'bed',
    access_key: TEST_KEYS.accessKey,
    secret_key: TEST_KEYS.secretKey,
  }
  await bed.write({ top: { services: { etcd: { backup_config: { s3backupconfig } } } } })
  await bed.build('up')
  await bed.kubectl('create', 'configmap', 'near', '--from-literal=a=b')
  s3.faults.push('cut')
  await bed.build('etcd', 'snapshot-save', '--name', 'far')
  await bed.kubectl('create', 'configmap', 'later', '--from-literal=a=b')
  for (const plane of bed.planes) await runIn(plane, 'rm', '-r', '/opt/rke/etcd-snapshots')
  must((await bed.build('etcd', 'snapshot-list')).includes('S3  far'), 'the copy is listed')
  for (const plane of bed.planes) await destroyData(plane, 'etcd')
  for (const plane of bed.planes) await killProgram(plane, 'etcd')
  s3.faults.push('spoil')
  await bed.build('etcd', 'snapshot-restore', '--name', 'far')
  await bed.isWell()
  const { items } = await bed.get<{ items: { metadata: { name: string } }[] }>('configmaps')
  const names = items.map(({ metadata }) => metadata.name)
  must(names.includes('near') && !names.includes('later'), `what is there is of the snapshot: ${names.join(' ')}`)
  bed.say(`S3 was asked: ${s3.requests.join(', ')}; it has ${[...s3.objects.keys()].join(', ')}`)
  await bed.write({})
  await bed.build('up')
  await bed.isSettled()
}
