/** Scenes of the kubectl comparison with invalid flags and arguments for every command, and with its help. */
import type { Scene } from '../scene.ts'

/** With what they need to get as far as looking at the flag. */
const COMMANDS: readonly string[] = [
  'annotate pods x a=b',
  'api-resources',
  'api-versions',
  'apply -f $M/cm.yaml',
  'apply edit-last-applied cm x',
  'apply set-last-applied -f $M/cm.yaml',
  'apply view-last-applied cm x',
  'attach x',
  'auth can-i get pods',
  'auth reconcile -f $M/cm.yaml',
  'auth whoami',
  'autoscale deploy web --max=3',
  'certificate approve x',
  'certificate deny x',
  'cluster-info',
  'cluster-info dump',
  'completion bash',
  'config current-context',
  'config delete-cluster x',
  'config delete-context x',
  'config delete-user x',
  'config get-clusters',
  'config get-contexts',
  'config get-users',
  'config rename-context x y',
  'config set a.b c',
  'config set-cluster x',
  'config set-context x',
  'config set-credentials x',
  'config unset a.b',
  'config use-context x',
  'config view',
  'cordon nobody',
  'cp a b:c',
  'create -f $M/cm.yaml',
  'create clusterrole x --verb=get --resource=pods',
  'create clusterrolebinding x --clusterrole=y',
  'create configmap x',
  'create cronjob x --image=y --schedule=z',
  'create deployment x --image=y',
  'create ingress x --rule=a/b=c:80',
  'create job x --image=y',
  'create namespace x',
  'create poddisruptionbudget x --selector=a=b --min-available=1',
  'create priorityclass x --value=1',
  'create quota x',
  'create role x --verb=get --resource=pods',
  'create rolebinding x --role=y',
  'create secret docker-registry x',
  'create secret generic x',
  'create secret tls x',
  'create service clusterip x --tcp=80',
  'create service externalname x --external-name=y',
  'create service loadbalancer x --tcp=80',
  'create service nodeport x --tcp=80',
  'create serviceaccount x',
  'create token default',
  'debug pod/x',
  'delete pods x',
  'describe pods x',
  'diff -f $M/cm.yaml',
  'drain nobody',
  'edit pods x',
  'events',
  'exec x -- true',
  'explain pods',
  'expose svc web --port=80',
  'get pods',
  'kuberc view',
  'kustomize $M',
  'label pods x a=b',
  'logs x',
  'options',
  'patch pods x -p {}',
  'plugin list',
  'port-forward x 80',
  'proxy',
  'replace -f $M/cm.yaml',
  'rollout history deploy web',
  'rollout pause deploy web',
  'rollout restart deploy web',
  'rollout resume deploy web',
  'rollout status deploy web',
  'rollout undo deploy web',
  'run x --image=y',
  'scale deploy web --replicas=1',
  'set env deploy web a=b',
  'set image deploy web a=b',
  'set resources deploy web',
  'set selector svc web a=b',
  'set serviceaccount deploy web x',
  'set subject rolebinding x',
  'taint nodes nobody a=b:NoSchedule',
  'top node',
  'top pod',
  'uncordon nobody',
  'version',
  'wait pods x --for=delete',
]

/** None of them lets a command do anything. */
const WRONG = [
  '--nosuch',
  '-Z',
  '--output',
  '-o nosuch --v=x',
  '--request-timeout=never',
  '--context=nosuch',
  '--dry-run=maybe',
  '--help',
]

/** Inserts the flag before `--`, because arguments behind it belong to the program in the container. */
function withFlag(command: string, flag: string): string {
  const [words = '', ...rest] = command.split(' -- ')
  return [`${words} ${flag}`, ...rest].join(' -- ')
}

export const wrongFlags: Scene = {
  name: 'mistakes/flags',
  mode: 'reads',
  lines: COMMANDS.flatMap((command) => WRONG.map((flag) => withFlag(command, flag))).filter(isHarmless),
}

/** Commands for which one of these is right and which would go on to do something. */
function isHarmless(line: string): boolean {
  return !/^(?:proxy|config (?:set|unset|use|delete|rename)\S* .*--context)/.test(line) || line.endsWith('--help')
}

/** With nothing behind, and with more than it takes. */
export const wrongArguments: Scene = {
  name: 'mistakes/arguments',
  mode: 'reads',
  lines: [
    ...new Set(
      COMMANDS.map(
        (command) =>
          /^[a-z-]+(?: (?:[a-z-]+(?<=-.*)|can-i|whoami|approve|deny|dump|bash|view|list|set|unset)(?= |$))?/.exec(
            command,
          )?.[0] ?? '',
      ),
    ),
  ].filter((command) => !/^(?:proxy|events|api-|options|version|completion|config view|cluster-info)/.test(command)),
}
