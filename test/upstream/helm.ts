/**
 * Tests Helm 3 with `hyperkube up`: `node test/upstream/helm.ts`. It installs, upgrades, rolls back, tests and
 * uninstalls a chart with --wait. The chart has a custom resource with its definition, a Deployment, a StatefulSet with
 * volumes, hook Jobs and a test. Needs Go to build Helm once.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { buildHelm } from './go-program.ts'
import { end } from './kube-apiserver.ts'
import { HYPERKUBE } from './ours.ts'

const HELM = buildHelm()
const RELEASE = 'shop'

const container = (command: string): string => `
      containers:
      - name: c
        image: example.com/c:{{ .Values.version }}
        command: ["sh", "-c", "${command}"]`

const job = (name: string, hook: string, command: string): string => `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-${name}
  annotations:
    helm.sh/hook: ${hook}
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never${container(command)}
`

const workload = (kind: string, more: string): string => `apiVersion: apps/v1
kind: ${kind}
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: {{ .Release.Name }}-${kind.toLowerCase()}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}-${kind.toLowerCase()}}
    spec:${container('sleep infinity')}
${more}`

const CHART: Readonly<Record<string, string>> = {
  'Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 0.1.0\n',
  'values.yaml': 'replicas: 2\nversion: v1\nmigration: "true"\n',
  'crds/till.yaml': `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: tills.shop.example.com
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: tills, kind: Till}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {drawers: {type: integer, default: 3}}}
`,
  'templates/till.yaml':
    'apiVersion: shop.example.com/v1\nkind: Till\nmetadata:\n  name: {{ .Release.Name }}\nspec: {}\n',
  'templates/config.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  version: {{ .Values.version }}\n',
  'templates/service.yaml':
    'apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector: {app: {{ .Release.Name }}-deployment}\n  ports: [{port: 80}]\n',
  'templates/deployment.yaml': workload('Deployment', ''),
  'templates/statefulset.yaml': workload(
    'StatefulSet',
    `  serviceName: {{ .Release.Name }}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
`,
  ),
  'templates/before.yaml': job('before', 'pre-install,pre-upgrade', '{{ .Values.migration }}'),
  'templates/after.yaml': job('after', 'post-install,post-upgrade,post-rollback', 'sleep 1'),
  'templates/test.yaml': `apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: test}
spec:
  restartPolicy: Never
  containers:
  - {name: c, image: example.com/c:v1, command: ["true"]}
`,
}

async function writeChart(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(CHART)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}

interface Cluster {
  readonly child: ChildProcess
  readonly kubeconfig: string
}

async function startCluster(folder: string): Promise<Cluster> {
  const kubeconfig = join(folder, 'kubeconfig')
  const flags = ['--runtime=simulated', '--nodes=2', '--secure-port=0', '-o=json']
  const args = ['up', ...flags, `--data-dir=${join(folder, 'data')}`, `--kubeconfig=${kubeconfig}`]
  const child = spawn(HYPERKUBE, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`up ended with ${code}`)))
  })
  return { child, kubeconfig }
}

let failures = 0

/** Runs Helm, or kubectl, and says whether it did as expected. */
function step(program: string, args: readonly string[], { kubeconfig }: Cluster, expected: RegExp): void {
  const env = { ...process.env, KUBECONFIG: kubeconfig, HELM_NO_PLUGINS: '1' }
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8', timeout: 180_000 })
  const text = `${stdout}${stderr}`.trim()
  const isRight = expected.test(`${status} ${text}`)
  if (!isRight) failures += 1
  const name = program === HELM ? 'helm' : 'kubectl'
  process.stdout.write(`${isRight ? 'ok ' : 'NOT'} ${name} ${args.join(' ')}\n`)
  if (!isRight) process.stdout.write(`    expected ${expected}, got ${status} ${text}\n`)
}

function story(cluster: Cluster, chart: string): void {
  const helm = (args: string, expected: RegExp): void => step(HELM, args.split(' '), cluster, expected)
  const see = (args: string, expected: RegExp): void => step('kubectl', args.split(' '), cluster, expected)
  const value = (what: string, path: string): string => `get ${what} ${RELEASE} -o jsonpath={${path}}`
  helm(`install ${RELEASE} ${chart} --wait --timeout 2m`, /^0 .*STATUS: deployed\nREVISION: 1/su)
  see(value('till', '.spec.drawers'), /^0 3$/u)
  see(value('deployment', '.status.readyReplicas'), /^0 2$/u)
  see(`get pvc data-${RELEASE}-1 -o jsonpath={.status.phase}`, /^0 Bound$/u)
  see(
    `get endpointslices -l kubernetes.io/service-name=${RELEASE} -o jsonpath={.items[*].endpoints[*].conditions.ready}`,
    /^0 true true$/u,
  )
  see(`get jobs -o jsonpath={.items[*].status.succeeded}`, /^0 1 1$/u)
  helm(`upgrade ${RELEASE} ${chart} --wait --timeout 2m --set version=v2,replicas=3`, /^0 .*REVISION: 2/su)
  see(value('deployment', '.status.updatedReplicas'), /^0 3$/u)
  see(value('configmap', '.data.version'), /^0 v2$/u)
  helm(
    `upgrade ${RELEASE} ${chart} --wait --timeout 2m --set migration=false`,
    /^1 .*pre-upgrade hooks failed: .*BackoffLimitExceeded/su,
  )
  helm(`rollback ${RELEASE} 1 --wait --timeout 2m`, /^0 Rollback was a success/u)
  see(value('configmap', '.data.version'), /^0 v1$/u)
  see(value('deployment', '.spec.template.spec.containers[0].image'), /^0 example.com\/c:v1$/u)
  helm(`test ${RELEASE} --timeout 1m`, /^0 .*Phase: +Succeeded/su)
  helm(`history ${RELEASE} --max 4`, /^0 .*superseded.*superseded.*failed.*deployed/su)
  helm(`list -o json`, /"status":"deployed"/u)
  helm(`uninstall ${RELEASE} --wait --timeout 2m`, /^0 release "shop" uninstalled/u)
  see(`get deployments,statefulsets,services -l app.kubernetes.io/managed-by=Helm`, /^0 No resources found/u)
  see(`get crd tills.shop.example.com -o jsonpath={.metadata.name}`, /^0 tills/u)
}

const folder = await mkdtemp(join(tmpdir(), 'hyperkube-helm-'))
await writeChart(join(folder, 'chart'))
const cluster = await startCluster(folder)
try {
  story(cluster, join(folder, 'chart'))
} finally {
  await end(cluster.child, 'SIGTERM')
  await rm(folder, { recursive: true, force: true })
}
process.stdout.write(failures === 0 ? 'all steps passed\n' : `${failures} steps failed\n`)
process.exitCode = failures === 0 ? 0 : 1
