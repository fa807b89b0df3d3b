/**
 * Tests the addons of `hyperkube build` on two machines that are network namespaces (see build/machines.ts). Pods must
 * resolve names, `kubectl top` must work, an Ingress must answer with and without TLS, and user addons must be applied.
 * Then each addon is disabled and removed completely. Pods use our image and upstream's agnhost from this machine.
 * Takes some minutes.
 *
 *     node test/upstream/build-addons.ts [--keep]
 */
import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs, promisify } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { makeImages } from '../images/main.ts'
import { Bed } from './build/bed.ts'
import { makeMachines, type TestMachine } from './build/machines.ts'
import { mustBe, Shown, untilSo } from './shown.ts'

const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })
const run = promisify(execFile)
const shown = new Shown()
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const HOST = 'web.example'
const LOCAL_DNS = '169.254.20.10'
const AGNHOST = 'registry.k8s.io/e2e-test-images/agnhost:2.63.0'

/** A script that sends requests repeatedly and prints the responses. */
const ASKS = `
while true; do
  echo "server=$(awk '/^nameserver/ {print $2}' /etc/resolv.conf)"
  for name in web web.default web.default.svc.cluster.local nobody.default.svc.cluster.local; do
    echo "$name=$(dig +short +search +time=3 +tries=2 "$name")"
  done
  echo "back=$(dig +short +time=3 +tries=2 -x "$(dig +short web.default.svc.cluster.local)")"
  sleep 2
done
`

const pod = (words: readonly string[], isCommand = false): object => ({
  terminationGracePeriodSeconds: 1,
  containers: [
    {
      name: 'c',
      image: AGNHOST,
      imagePullPolicy: 'IfNotPresent',
      ...(isCommand ? { command: words } : { args: words }),
    },
  ],
})
const OBJECTS = [
  { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'asker' }, spec: pod(['sh', '-c', ASKS], true) },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: { metadata: { labels: { app: 'web' } }, spec: pod(['netexec', '--http-port=8080']) },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'web', annotations: { 'nginx.ingress.kubernetes.io/ssl-redirect': 'false' } },
    spec: {
      tls: [{ hosts: [HOST], secretName: 'web-tls' }],
      rules: [
        {
          host: HOST,
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        },
      ],
    },
  },
]
/** Not `default`, which a cluster has anyway. */
const USER_ADDON = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: inline\n  namespace: default\ndata: {a: b}\n'
const USER_INCLUDE = USER_ADDON.replace('inline', 'included')

/** Every object that an addon might leave, by kind and name. */
async function inventory(bed: Bed): Promise<Set<string>> {
  const kinds = [
    'serviceaccounts,configmaps,secrets,services,endpointslices,deployments,replicasets,daemonsets,pods,controllerrevisions,leases',
    'roles,rolebindings,clusterroles,clusterrolebindings,namespaces,apiservices,ingressclasses',
  ].join(',')
  const columns = 'custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name'
  const text = await bed.kubectl('get', kinds, '-A', '-o', columns, '--no-headers')
  const lines = text.split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '))
  return new Set(lines.filter((line) => line !== '' && !IGNORED.test(line)))
}

/** Objects that the cluster creates itself; accounts of controllers exist from their first use. */
const IGNORED =
  /^(?:ServiceAccount kube-system \S+-controller$|ConfigMap \S+ kube-root-ca\.crt|Lease (?:kube-node-lease|kube-system) |ConfigMap default (?:inline|included)|Secret kube-system full-cluster-state)/

async function untilReady(bed: Bed, ...what: readonly (readonly [namespace: string, name: string])[]): Promise<void> {
  for (const [namespace, name] of what)
    await bed.kubectl('rollout', 'status', '-n', namespace, name, '--timeout=240s').catch(async (error: unknown) => {
      await bed.kubectl('get', 'pods', '-A', '-o', 'wide')
      await bed.kubectl('describe', 'pods', '-n', namespace)
      throw error
    })
}

/** With the machine's own copy of the program. */
const LOAD = 'exec /opt/hyperkube/programs/*/bin/hyperkube image load --data-dir "/var/lib/hyperkube/$(hostname)" -'

async function runShell({ options: { key } }: Bed, { address }: TestMachine, input: string): Promise<string> {
  const flags = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR']
  const done = run('ssh', ['-i', key, ...flags.flatMap((flag) => ['-o', flag]), `root@${address}`, LOAD])
  const { stdin } = done.child
  if (stdin !== null) await pipeline(createReadStream(input), stdin)
  return (await done).stdout
}

/** A program in the network of a machine, with this machine's files. */
async function onNetwork({ namespace }: TestMachine, program: string, ...args: string[]): Promise<string> {
  const { stdout } = await run('nsenter', [`--net=/run/netns/${namespace}`, program, ...args])
  return stdout
}

async function loadImages(bed: Bed): Promise<void> {
  const into = join(bed.options.folder, 'images')
  await mkdir(into, { recursive: true })
  const archives = await makeImages(into, ['agnhost'], say)
  for (const machine of bed.options.machines) for (const archive of archives) say(await runShell(bed, machine, archive))
}

/**
 * The last responses that the pod has printed, by request. `kubectl exec` would reach the files of this machine,
 * because the machines are chrooted.
 */
async function answersOf(bed: Bed): Promise<ReadonlyMap<string, string>> {
  const lines = (await bed.kubectl('logs', 'asker', '--tail=30')).split('\n')
  return new Map(
    lines.flatMap((line): [string, string][] =>
      line.includes('=') ? [[line.replace(/=.*/, ''), line.replace(/^[^=]*=/, '')]] : [],
    ),
  )
}

async function tryDns(bed: Bed): Promise<void> {
  await shown.step('a pod resolves names of the cluster, by the cache on its node', async () => {
    const ip = await bed.kubectl('get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}')
    const wanted = {
      ...Object.fromEntries(['web', 'web.default', 'web.default.svc.cluster.local'].map((name) => [name, ip])),
      back: 'web.default.svc.cluster.local.',
      'nobody.default.svc.cluster.local': '',
      server: LOCAL_DNS,
    }
    await untilSo(
      () => answersOf(bed),
      (found) => Object.entries(wanted).every(([name, answer]) => found.get(name) === answer),
      90,
    )
    return `web is ${ip}, as ${LOCAL_DNS} says`
  })
  await shown.step('there are as many servers as the autoscaler wants', async () => {
    const asked = (): Promise<string> =>
      bed.kubectl(
        'get',
        'deployment',
        'coredns',
        '-n',
        'kube-system',
        '-o',
        'jsonpath={.spec.replicas} {.status.readyReplicas}',
      )
    await untilSo(asked, (said) => said === '2 2', 120)
    return '2 on 2 nodes'
  })
}

async function tryMetrics(bed: Bed): Promise<void> {
  await shown.step('kubectl top', async () => {
    const top = (...args: string[]): Promise<string> => bed.kubectl('top', ...args, '--no-headers').catch(() => '')
    const lines = (text: string): number => text.split('\n').filter((line) => line.trim() !== '').length
    await untilSo(
      () => top('nodes'),
      (text) => lines(text) === 2,
      120,
    )
    await untilSo(
      () => top('pods'),
      (text) => lines(text) === 3,
      120,
    )
    await bed.kubectl('get', '--raw', '/apis/metrics.k8s.io/v1beta1/nodes')
    return (await top('nodes')).trim().split('\n').join(' | ')
  })
}

async function tryIngress(bed: Bed): Promise<void> {
  const worker = bed.options.machines[1]
  if (worker === undefined) throw new Error('There is no worker')
  const curl = (...args: string[]): Promise<string> =>
    onNetwork(worker, 'curl', '--silent', '--max-time', '10', ...args).catch(() => '')
  const at = (port: number): string[] => ['--resolve', `${HOST}:${port}:${worker.address}`]
  await shown.step('an Ingress answers, with both of its pods', async () => {
    const names = new Set<string>()
    await untilSo(
      async () => {
        const name = await curl(...at(80), `http://${HOST}/hostname`)
        if (name.startsWith('web-')) names.add(name)
        return names.size
      },
      (many) => many === 2,
      90,
    )
    return [...names].join(', ')
  })
  await shown.step('by HTTPS with the certificate of its Secret', async () => {
    const ca = join(bed.options.folder, 'ca.pem')
    const said = await curl(...at(443), '--cacert', ca, `https://${HOST}/hostname`)
    mustBe(said.startsWith('web-'), said)
    return said
  })
  await shown.step('another host is nobody’s', async () => {
    const said = await curl(`http://${worker.address}/`)
    mustBe(said === 'default backend - 404', said)
    return said
  })
  await shown.step('the Ingress says where it is reached', async () => {
    const told = (): Promise<string> =>
      bed.kubectl('get', 'ingress', 'web', '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}')
    await untilSo(told, (ip) => ip === worker.address)
    return await told()
  })
}

async function trySwitchingOff(bed: Bed, before: ReadonlySet<string>): Promise<void> {
  await shown.step('switched off again', async () => {
    await bed.write({})
    await bed.build('up')
    return ''
  })
  await shown.step('nothing is left', async () => {
    const own = async (): Promise<string[]> =>
      [...(await inventory(bed))].filter((line) => !before.has(line) && !/ default (?:web|asker)/.test(line))
    await untilSo(own, (left) => left.length === 0, 90)
    const status = await bed.kubectl('get', 'ingress', 'web', '-o', 'jsonpath={.status.loadBalancer}')
    mustBe(status === '{}', `the Ingress says ${status}`)
    for (const machine of bed.options.machines) {
      const addresses = await onNetwork(machine, 'ip', '-brief', 'address', 'show', 'dev', 'lo')
      mustBe(!addresses.includes(LOCAL_DNS), `${machine.name}: ${addresses}`)
    }
    for (const name of ['inline', 'included']) {
      const found = await bed.kubectl('get', 'configmap', name, '--ignore-not-found', '-o', 'name')
      mustBe(found === '', `${found} is left`)
    }
    return `${before.size} objects, as before`
  })
}

async function writeObjects(bed: Bed): Promise<void> {
  const authority = createAuthority({ commonName: 'ca' }, { clock: realClock, random: secureRandom })
  const { certificatePem, keyPem } = authority.issue({ commonName: HOST, names: { dns: [HOST] }, purpose: 'server' })
  await writeFile(join(bed.options.folder, 'ca.pem'), authority.certificatePem)
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'web-tls' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificatePem, 'tls.key': keyPem },
  }
  const list = { apiVersion: 'v1', kind: 'List', items: [secret, ...OBJECTS] }
  await writeFile(join(bed.options.folder, 'objects.json'), JSON.stringify(list))
  await writeFile(join(bed.options.folder, 'include.yml'), USER_INCLUDE)
}

const NAMES = { prefix: 'hka', host: 'a', network: '10.196.0' }

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-addons-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const { machines, key } = await makeMachines(folder, 2, closing, NAMES)
  const bed = new Bed({ folder, machines, key, planes: 1, count: 2 })
  await writeObjects(bed)
  await bed.write({})
  closing.defer(async () => void (await bed.build('remove', '--force').catch((error: unknown) => say(String(error)))))
  await shown.step('a cluster without addons', async () => {
    await bed.build('up')
    return ''
  })
  const before = await inventory(bed)
  await loadImages(bed)
  await shown.step('all addons', async () => {
    const file = {
      dns: { provider: 'coredns', nodelocal: { ip_address: LOCAL_DNS } },
      monitoring: { provider: 'metrics-server' },
      ingress: { provider: 'nginx' },
      addons: USER_ADDON,
      addons_include: ['include.yml'],
    }
    await bed.write({ top: file })
    await bed.build('up')
    await untilReady(
      bed,
      ['kube-system', 'deployment/coredns'],
      ['kube-system', 'daemonset/node-local-dns'],
      ['kube-system', 'deployment/metrics-server'],
      ['ingress-nginx', 'daemonset/nginx-ingress-controller'],
    )
    const again = await bed.build('up')
    mustBe(again.includes('Nothing to do'), 'a second run has something to do')
    return ''
  })
  await shown.step('user addons are there', async () => {
    await bed.kubectl('get', 'configmap', 'inline', 'included')
    return ''
  })
  await bed.kubectl('apply', '-f', 'objects.json')
  await untilReady(bed, ['default', 'deployment/web'])
  await bed.kubectl('wait', '--for=condition=Ready', 'pod/asker', '--timeout=120s')
  await tryDns(bed)
  await tryMetrics(bed)
  await tryIngress(bed)
  await bed.kubectl('get', 'pods', '-A', '-o', 'wide')
  await trySwitchingOff(bed, before)
}

await shown.step('all of it', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
