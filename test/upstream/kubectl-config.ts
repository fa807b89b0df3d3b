/**
 * Compares our `kubectl config` with upstream's: `node test/upstream/kubectl-config.ts [--only TEXT]`. Each case runs
 * command lines in a temporary folder with the same kubeconfig files; output, exit codes and resulting files must be
 * equal. Help, memory addresses and the order of Go's maps are not compared. Exits with 1 on a difference.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })

const MAIN = `apiVersion: v1
kind: Config
current-context: dev
preferences: {}
unknown: lost
clusters:
- name: dev
  cluster: {server: "https://1.2.3.4:6443", certificate-authority: ca.crt, tls-server-name: x}
- name: 10.0.0.1
  cluster:
    server: https://10.0.0.1
    insecure-skip-tls-verify: true
    extensions:
    - name: z
      extension: {b: 1, a: [1, two]}
    - {name: a, extension: text}
users:
- name: admin
  user: {client-certificate: pki/c.crt, client-key: pki/c.key, client-certificate-data: ""}
- name: plugin
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./run, args: [a, b], env: [{name: A, value: b}], interactiveMode: Never}
- name: data
  user: {client-key-data: a2V5, client-certificate-data: Y2VydA==, token: secret, as: me, as-groups: [g], as-user-extra: {k: [v]}}
- name: basic
  user: {username: u, password: p, auth-provider: {name: oidc, config: {client-id: x}}}
contexts:
- name: dev
  context: {cluster: dev, user: admin, namespace: shop}
- name: other
  context: {cluster: 10.0.0.1, user: data}
- name: lost
  context: {cluster: nowhere, user: nobody}
`

const SECOND = `apiVersion: v1
kind: Config
current-context: second
clusters:
- name: dev
  cluster: {server: "https://second"}
- name: two
  cluster: {server: "https://two"}
contexts:
- name: second
  context: {cluster: two, user: admin}
users: []
`

/** Lines of one case stand one below the other; `K=` before them sets KUBECONFIG. */
const CASES: readonly string[] = [
  'current-context',
  'get-clusters',
  'get-users',
  'get-contexts',
  'get-contexts -o name',
  'get-contexts dev',
  'get-contexts dev nope neither',
  'get-contexts --no-headers',
  'get-contexts -o yaml',
  'view',
  'view --raw',
  'view --minify',
  'view --minify --raw',
  'view -o json',
  'view --raw -o json',

  'view --minify --context other',
  'view --minify --context lost',
  'view --minify --context nope',
  'view --flatten',

  'view --flatten --minify',
  'view --flatten --minify --context other',
  'view --flatten --minify --context other -o json',

  'view -o kyaml',
  'view -o name',
  'view --merge=false',
  'view --kubeconfig second --merge=false',
  'view extra',
  'view -o wide',

  'view --kubeconfig nope',
  'view --kubeconfig nope --merge',
  'view --kubeconfig second',
  'view --kubeconfig broken',
  "view -o jsonpath={.users[?(@.name=='basic')].user.password}",
  "view --raw -o jsonpath={.users[?(@.name=='basic')].user.password}",
  'view -o go-template={{range.clusters}}{{.name}}{{end}}',
  'use-context other',
  'use other',
  'use-context nope',
  'use-context dev',
  'use-context other\ncurrent-context\nview',

  'delete-cluster dev',
  'delete-cluster nope',
  'delete-context dev',
  'delete-context nope',
  'delete-user data',
  'delete-user nope',
  'delete-user',
  'delete-user a b',
  'delete-context other\ndelete-context other',
  'rename-context dev new',
  'rename-context dev other',
  'rename-context nope new',
  'rename-context other new',

  'set-context new --cluster=dev',
  'set-context dev --namespace=x',
  'set-context dev --user=',
  'set-context --current -n kube-system',
  'set-context dev --current',
  'set-context',
  'set-context other --cluster a --user b --namespace c',

  'set-cluster dev --server=https://x',
  'set-cluster new --server=https://x',
  'set-cluster dev --insecure-skip-tls-verify',
  'set-cluster dev --certificate-authority=ca.crt',
  'set-cluster dev --certificate-authority=ca.crt --embed-certs',

  'set-cluster dev --embed-certs',
  'set-cluster dev --embed-certs --certificate-authority=nope',
  'set-cluster dev --tls-server-name=y',

  'set-cluster dev --insecure-skip-tls-verify --certificate-authority=ca.crt',
  'set-cluster dev --proxy-url=http://p',

  'set-cluster 10.0.0.1 --certificate-authority=/etc/hostname',
  'set-cluster 10.0.0.1 --server https://z --tls-server-name n',
  'set-cluster dev --certificate-authority=',

  'set-credentials new --token=t',
  'set-credentials data --token=t',
  'set-credentials data --username=a --password=b',
  'set-credentials basic --token=t',

  'set-credentials basic --token=t --username=u',
  'set-credentials new --client-certificate=ca.crt --client-key=pki/c.key',

  'set-credentials new --client-certificate=ca.crt --embed-certs',
  'set-credentials new --embed-certs',
  'set-credentials new --embed-certs --client-key=nope',
  'set-credentials data --client-key=pki/c.key',
  'set-credentials admin --client-key=pki/c.key --embed-certs=true',

  'set-credentials new --auth-provider=oidc',
  'set-credentials new --auth-provider=oidc --auth-provider-arg=a=b,c=d',
  'set-credentials basic --auth-provider-arg=client-id-',

  'set-credentials basic --auth-provider-arg=x=y --auth-provider-arg client-id-',
  'set-credentials basic --auth-provider=gcp',

  'set-credentials new --exec-command=run',
  'set-credentials new --exec-command=./bin/run --exec-api-version=v1',
  'set-credentials plugin --exec-command=other',

  'set-credentials plugin --exec-arg=x --exec-arg=y',
  'set-credentials plugin --exec-env=A=c',
  'set-credentials plugin --exec-env=A-',
  'set-credentials plugin --exec-env=B=c',

  'set-credentials plugin --exec-interactive-mode=Always',
  'set-credentials plugin --exec-interactive-mode=x',
  'set-credentials plugin --exec-provide-cluster-info',
  'set-credentials new --exec-arg=x',
  'set-credentials admin --exec-env=B=c',

  'set current-context other',
  'set clusters.dev.server https://y',
  'set clusters.10.0.0.1.server https://y',
  'set clusters.new.server https://y',

  'set clusters.dev.insecure-skip-tls-verify true',
  'set clusters.dev.insecure-skip-tls-verify maybe',
  'set clusters.dev.certificate-authority-data Y2E=',

  'set clusters.dev.certificate-authority-data ca --set-raw-bytes',
  'set clusters.dev.certificate-authority-data c#',
  'set users.data.act-as you',

  'set users.data.act-as-groups you',
  'set users.data.exec.command you',
  'set contexts.dev.namespace n',
  'set contexts.a.b.c.user n',
  'set preferences.colors true',

  'set users.data.client-key-data abc',
  'set users.data.client-key-data abcde',
  'set users.data.act-as-user-extra.a b',
  'set current-context.x y',
  'set preferences.colors true\nset preferences.colors false',

  'unset current-context',
  'unset contexts.dev.namespace',
  'unset contexts.dev',
  'unset users.data.token',
  'unset users.plugin.exec',
  'unset clusters',
  'unset users.nope.token',

  'unset users.basic.auth-provider',
  'unset clusters.dev.certificate-authority',
  'unset preferences',
  'unset kind',
  'unset users.data.act-as-groups',
  'unset clusters.10.0.0.1.extensions',

  'K=main:second view',
  'K=main:second use-context second',
  'K=main:second set-cluster two --server=https://q',
  'K=main:second set-cluster three --server=https://q',

  'K=main:second delete-cluster dev',
  'K=main:second unset current-context',
  'K=second:main view',
  'K=nope:main current-context',
  'K=nope:neither set-cluster a --server=b',

  'K=main:second rename-context second third',
  'K=second:main delete-context dev',
  'K=sub/new set-context x --cluster=y',
  'K=main:second:main get-contexts',

  'K=broken view',
  'K=broken:main current-context',
  'K=empty view',
  'K=empty set-context a',
  'K=doubled view',
  'K=nope view',
  'K=nope current-context',

  'K=locked set-context a',
  'K=locked view',
  'bogus',
  'K=nope get-contexts',
  'K=nope delete-cluster x',
  'view --nosuch',
  'set-cluster dev --server',
]

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function makeBed(folder: string): Promise<void> {
  await mkdir(join(folder, 'pki'), { recursive: true })
  const files: Record<string, string> = {
    main: MAIN,
    second: SECOND,
    empty: '',
    locked: SECOND,
    'locked.lock': '',
    broken: 'a: b: c\n',
    doubled: 'clusters:\n- name: a\n  cluster: {server: x}\n- name: a\n  cluster: {server: z}\n',
    'ca.crt': 'an authority\n',
    'pki/c.crt': 'a certificate\n',
    'pki/c.key': 'a key\n',
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(program, args, { env, cwd, timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
    })
  })
}

async function filesIn(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile())
  const paths = names.map((one) => join(one.parentPath, one.name)).sort()
  const texts = await Promise.all(paths.map(async (path) => `== ${path}\n${await readFile(path, 'utf8')}`))
  return texts.join('')
}

/** Go's maps have no order, and its addresses no meaning. */
function masked(text: string, folder: string): string {
  return text
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/0x[0-9a-f]+/g, 'ADDRESS')
    .replace(/NAME\n([^]*?)(?=---\n)/, (_, names: string) => `NAME\n${names.split('\n').sort().join('\n')}`)
}

async function outcome(program: string, lines: readonly string[], bed: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-config-'))
  try {
    await cp(bed, folder, { recursive: true })
    const said: string[] = []
    for (const line of lines) {
      const [, config = 'main', rest = ''] = /^(?:K=(\S+) )?(.*)$/.exec(line) ?? []
      const env = { PATH: process.env['PATH'], HOME: folder, XDG_CACHE_HOME: tmpdir(), KUBECONFIG: config, TZ: 'UTC' }
      const { code, out, err } = await run(program, ['config', ...rest.split(' ')], env, folder)
      said.push(masked(`$ ${line}\n${out}---\n${err}exit ${code}\n`, folder))
    }
    return `${said.join('')}${masked(await filesIn(folder), folder)}`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function main(): Promise<number> {
  const { kubectl } = await upstreamPrograms(['kubectl'], (text) => void process.stdout.write(`${text}\n`))
  const bed = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-config-bed-'))
  const mine = join(bed, 'ours', 'kubectl')
  await mkdir(join(bed, 'ours'))
  await mkdir(join(bed, 'files'))
  await symlink(HYPERKUBE, mine)
  await makeBed(join(bed, 'files'))
  let different = 0
  const cases = CASES.filter((one) => options.only === undefined || one.includes(options.only))
  for (const one of cases) {
    const lines = one.split('\n')
    const theirs = (await outcome(kubectl, lines, join(bed, 'files'))).split('\n')
    const ours = (await outcome(mine, lines, join(bed, 'files'))).split('\n')
    const at = theirs.findIndex((line, index) => line !== ours[index])
    if (at < 0 && theirs.length === ours.length) continue
    different++
    const where = at < 0 ? theirs.length : at
    process.stdout.write(`config ${one}\n  - ${theirs[where] ?? '(end)'}\n  + ${ours[where] ?? '(end)'}\n`)
  }
  await rm(bed, { recursive: true, force: true })
  process.stdout.write(`${cases.length} cases, ${different} differ from upstream\n`)
  return different === 0 ? 0 : 1
}

process.exitCode = await main()
