/** The commands of `newcomer.ts` and their expected output. A command is repeated until the output appears. */

export interface Step {
  readonly typed: string
  readonly sees: RegExp
  /** In the picture. */
  readonly isShown?: boolean
}

/** The files of the user. */
export const FILES: Readonly<Record<string, string>> = {
  'db.yaml': `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: db
        image: postgres:18
        volumeMounts: [{name: data, mountPath: /var/lib/postgresql}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
`,
  'agent.yaml': `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent:1}]}
`,
  // Does not wait five minutes for a node that may come back.
  'patient.json': JSON.stringify({
    spec: {
      template: {
        spec: {
          tolerations: ['not-ready', 'unreachable'].map((key) => ({
            key: `node.kubernetes.io/${key}`,
            operator: 'Exists',
            effect: 'NoExecute',
            tolerationSeconds: 5,
          })),
        },
      },
    },
  }),
}

const annotated = (name: string, value: string): string =>
  JSON.stringify({ spec: { template: { metadata: { annotations: { [`simulated.hyperkube.io/${name}`]: value } } } } })

const step = (typed: string, sees: RegExp): Step => ({ typed, sees })
const shown = (typed: string, sees: RegExp): Step => ({ typed, sees, isShown: true })

/** Where pods are, and how. */
const podsOf = (app: string): string =>
  `kubectl get pods -l app=${app} -o 'jsonpath={range .items[*]}{.spec.nodeName}={.status.phase} {end}'`

export const STORY: readonly Step[] = [
  shown('kubectl get nodes', /(node-\d +Ready .*\n?){3}/),
  // A Deployment: rolled out, broken, rolled back, scaled.
  shown('kubectl create deployment web --image=nginx:1.28 --replicas=3', /created/),
  step('kubectl rollout status deployment/web', /successfully rolled out/),
  shown('kubectl set image deployment/web nginx=nginx:1.29', /image updated/),
  shown('kubectl rollout status deployment/web | tail -1', /successfully rolled out/),
  step(`kubectl patch deployment web -p '${annotated('pull-error', 'no such image')}'`, /patched/),
  shown('kubectl get pods', /(ErrImagePull|ImagePullBackOff)/),
  shown('kubectl rollout undo deployment/web', /rolled back/),
  step('kubectl rollout status deployment/web', /successfully rolled out/),
  step('kubectl scale deployment web --replicas=5', /scaled/),
  shown('kubectl get deployment web', /web +5\/5 +5 +5/),
  // The usage is simulated, and the autoscaler reads it.
  step('kubectl set resources deployment web --requests=cpu=100m', /updated/),
  step(`kubectl patch deployment web -p '${annotated('cpu', '150m')}'`, /patched/),
  step('kubectl autoscale deployment web --min=2 --max=6 --cpu-percent=50', /autoscaled/),
  step('kubectl top pods -l app=web', /150m/),
  shown('kubectl get hpa', /Deployment\/web +cpu: 150%\/50% +2 +6 +6/),
  step('kubectl get deployment web', /web +6\/6/),
  step('kubectl delete hpa web', /deleted/),
  // Volumes, a pod for each node, work that ends.
  step('kubectl apply -f db.yaml -f agent.yaml', /statefulset.apps\/db created\ndaemonset.apps\/agent created/),
  step('kubectl rollout status statefulset/db', /complete/),
  step('kubectl get statefulset,pvc', /db +2\/2[^]*data-db-0 +Bound[^]*data-db-1 +Bound/),
  shown(
    'kubectl get pvc -o custom-columns=NAME:.metadata.name,STATUS:.status.phase,CLASS:.spec.storageClassName',
    /data-db-0 +Bound/,
  ),
  step('kubectl rollout status daemonset/agent', /successfully rolled out/),
  step('kubectl get daemonset agent', /agent +3 +3 +3 +3 +3/),
  shown(`kubectl create job pi --image=perl -- sh -c 'sleep 2; echo 3.14159'`, /created/),
  step('kubectl wait --for=condition=complete job/pi', /met/),
  shown('kubectl logs job/pi', /^3.14159$/),
  step(`kubectl create cronjob tick --image=busybox --schedule='* * * * *' -- date`, /created/),
  // Nodes: drained, tainted, lost and found.
  step('kubectl drain node-2 --ignore-daemonsets', /node\/node-2 (drained|evicted)/),
  step(podsOf('web'), /^(node-[01]=Running ?){6}$/),
  step('kubectl uncordon node-2', /uncordoned/),
  step('kubectl taint nodes node-1 repair=now:NoExecute', /tainted/),
  step(podsOf('web'), /^(node-[02]=Running ?){6}$/),
  step('kubectl taint nodes node-1 repair-', /untainted/),
  step(`kubectl patch deployment web --patch-file patient.json`, /patched/),
  step('kubectl rollout status deployment/web', /successfully rolled out/),
  shown('kubectl annotate node node-0 simulated.hyperkube.io/fault=down', /annotated/),
  shown('kubectl get nodes', /node-0 +NotReady/),
  step(
    `kubectl get pods -l app=web --field-selector=status.phase=Running -o 'jsonpath={.items[*].spec.nodeName}'`,
    /^(?=(.*node-[12]){6})/,
  ),
  step('kubectl annotate node node-0 simulated.hyperkube.io/fault-', /annotated/),
  step('kubectl get nodes', /node-0 +Ready/),
  step(podsOf('web'), /^(node-\d=Running ?){6}$/),
  step('kubectl get jobs', /tick-\d+ +Complete/),
  // A namespace that goes takes everything along.
  step('kubectl create namespace gone', /created/),
  step('kubectl -n gone create deployment web --image=nginx --replicas=3', /created/),
  step('kubectl -n gone apply -f db.yaml', /created/),
  step('kubectl -n gone rollout status statefulset/db', /complete/),
  step('kubectl delete namespace gone', /deleted/),
  step('kubectl get all,pvc -n gone', /No resources found/),
  step('kubectl get namespaces -o name', /^(?![^]*gone)/),
  step('kubectl delete cronjob tick', /deleted/),
]
