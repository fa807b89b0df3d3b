/** Command lines that two kubectls run. */

export interface Line {
  readonly args: readonly string[]
  /** Run by upstream's before each of the two, and after. */
  readonly before?: readonly string[]
  readonly after?: readonly string[]
}

const DESCRIBED = (
  'pods rc secrets svc sa nodes limitranges quota pv pvc ns endpoints cm endpointslices hpa ing ingressclasses servicecidr ' +
  'ipaddresses netpol jobs cronjobs sts deploy ds rs storageclass csinodes vac pdb roles clusterroles rolebindings ' +
  'clusterrolebindings priorityclasses crd widgets leases csidriver apiservices flowschemas prioritylevelconfigurations'
).split(' ')

const PLAIN = [
  ...DESCRIBED.map((type) => `describe ${type} -n shown`),
  ...[
    'pod full',
    'deploy web',
    'ds agent',
    'sts db',
    'job once',
    'hpa scaler',
    'svc web',
    'pod fu',
    'pod nope',
    'nosuch x',
  ].map((what) => `describe ${what} -n shown`),
  'describe',
  'describe pods -A',
  'describe pods -l a=zz -n shown',
  'describe pods,svc -n shown',
  'describe deploy/web svc/web -n shown',
  'describe pod full --show-events=false -n shown',
  'describe pods --show-events -n shown',
  'describe -f custom.yaml',
  'describe pods --chunk-size=1 -n shown',
  'describe pod --nosuchflag',
  'explain pods',
  'explain pods.spec.containers',
  'explain deploy --recursive',
  'explain pod.spec.restartPolicy',
  'explain pods.spec.nope',
]

export const LINES: readonly Line[] = PLAIN.map((line) => ({ args: line.split(' ') }))
