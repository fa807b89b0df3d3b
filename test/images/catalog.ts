/**
 * The images of upstream's conformance suite and a few popular ones, built from Debian packages and Go programs without
 * a registry. They have the names that the suite uses, and contain the programs that its tests need.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

import { pauseProgram } from '#containerd/pause-program.ts'

import { upstreamPrograms, upstreamSource } from '../upstream/programs.ts'
import { filesOf, unpacked } from './debian.ts'
import type { LayerFile } from './layer.ts'

export type Architecture = 'amd64' | 'arm64'

export interface Tools {
  readonly architecture: Architecture
  readonly say: (line: string) => void
}

export interface Image {
  readonly names: readonly string[]
  /** Names of layers of the same archive, the lowest first. */
  readonly layers: readonly string[]
  readonly config: object
}

/** Images that share layers. */
export interface ArchiveRecipe {
  readonly images: readonly Image[]
  readonly layers: Readonly<Record<string, (tools: Tools) => LayerFile[] | Promise<LayerFile[]>>>
}

const E2E = 'registry.k8s.io/e2e-test-images'
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const CATALOG: Readonly<Record<string, ArchiveRecipe>> = {
  busybox: {
    images: [
      {
        names: ['docker.io/library/busybox:latest'],
        layers: ['busybox'],
        config: { Cmd: ['sh'], Env: [PATH] },
      },
    ],
    layers: { busybox: () => [...busybox(), ...people()] },
  },
  'e2e-busybox': {
    images: [{ names: [`${E2E}/busybox:1.37.0-1`], layers: ['busybox'], config: { Cmd: ['sh'], Env: [PATH] } }],
    layers: {
      // Debian's busybox, as a shell, hands on no variables like "data-1", which tests look for that ask for "sh"; those that ask for
      // "/bin/sh" look for its words.
      busybox: ({ say }) => [
        ...busybox(),
        ...people(),
        ...filesOf(unpacked(['bash-static'], say), ['bin/bash-static']),
        { path: 'usr/local/bin/sh', mode: 0o777, link: '/bin/bash-static' },
      ],
    },
  },
  pause: {
    images: [
      {
        names: ['3.10.2', '3.10.1', '3.10'].map((tag) => `registry.k8s.io/pause:${tag}`),
        layers: ['pause'],
        config: { Entrypoint: ['/pause'], User: '65535:65535', WorkingDir: '/' },
      },
    ],
    layers: { pause: ({ architecture }) => [{ path: 'pause', content: pauseProgram(architecture), mode: 0o755 }] },
  },
  agnhost: {
    images: [
      agnhost([`${E2E}/agnhost:2.63.0`, `${E2E}/agnhost:2.55`], [], ['pause']),
      agnhost([`${E2E}/nautilus:1.8`], ['nautilus'], ['test-webserver']),
      agnhost([`${E2E}/kitten:1.8`], ['kitten'], ['test-webserver']),
    ],
    layers: {
      tools: agnhostTools,
      agnhost: agnhostProgram,
      nautilus: () => picture('nautilus'),
      kitten: () => picture('kitten'),
    },
  },
  nginx: {
    images: [
      {
        names: ['docker.io/library/nginx:latest', `${E2E}/nginx:1.15-4`],
        layers: ['nginx'],
        config: {
          Entrypoint: ['/usr/sbin/nginx'],
          Cmd: ['-g', 'daemon off;'],
          Env: [PATH],
          StopSignal: 'SIGQUIT',
          ExposedPorts: { '80/tcp': {} },
        },
      },
    ],
    layers: { nginx },
  },
  httpd: {
    images: [
      {
        names: ['docker.io/library/httpd:latest', `${E2E}/httpd:2.4.38-4`, `${E2E}/httpd:2.4.39-4`],
        layers: ['httpd'],
        config: {
          Cmd: ['/usr/sbin/apache2', '-f', '/etc/apache2/httpd.conf', '-DFOREGROUND'],
          Env: [PATH],
          StopSignal: 'SIGWINCH',
          ExposedPorts: { '80/tcp': {} },
        },
      },
    ],
    layers: { httpd },
  },
  'glibc-dns-testing': {
    images: [{ names: [`${E2E}/glibc-dns-testing:2.0.0`], layers: ['dns'], config: { Cmd: ['sh'], Env: [PATH] } }],
    layers: {
      dns: ({ say }) => [
        ...busybox(),
        ...people(),
        ...filesOf(unpacked(['bind9-dnsutils', 'libc-bin'], say), [
          'usr/bin/dig',
          'usr/bin/nslookup',
          'usr/bin/getent',
        ]),
        { path: 'etc/nsswitch.conf', content: NAME_SERVICES },
      ],
    },
  },
  nonewprivs: {
    images: [{ names: [`${E2E}/nonewprivs:1.4`], layers: ['nnp'], config: { Cmd: ['nnp'], Env: [PATH] } }],
    layers: {
      nnp: async ({ say }) => {
        const { nnp } = await upstreamPrograms(['nnp'], say)
        return [...busybox(), ...people(), { path: 'usr/local/bin/nnp', from: nnp, mode: 0o6755 }]
      },
    },
  },
  'sample-apiserver': {
    images: [
      {
        names: [`${E2E}/sample-apiserver:1.29.2`],
        layers: ['server'],
        config: { Entrypoint: ['/sample-apiserver'], Env: [PATH] },
      },
    ],
    layers: {
      server: async ({ say }) => {
        const { 'sample-apiserver': server } = await upstreamPrograms(['sample-apiserver'], say)
        return [...people(), { path: 'sample-apiserver', from: server, mode: 0o755 }]
      },
    },
  },
  etcd: {
    images: [
      {
        names: ['registry.k8s.io/etcd:3.6.8-0'],
        layers: ['etcd'],
        config: { Cmd: ['/usr/local/bin/etcd'], Env: [PATH] },
      },
    ],
    layers: {
      etcd: ({ say }) => [
        ...people(),
        ...filesOf(unpacked(['etcd-server'], say), ['usr/bin/etcd => usr/local/bin/etcd']),
      ],
    },
  },
}

function agnhost(names: readonly string[], layers: readonly string[], Cmd: readonly string[]): Image {
  return {
    names,
    layers: ['tools', 'agnhost', ...layers],
    config: { Entrypoint: ['/agnhost'], Cmd, Env: [PATH], WorkingDir: '/' },
  }
}

/** The files of an image that define users and their home directories. */
function people(): LayerFile[] {
  const user = (name: string, id: number, home: string): string => `${name}:x:${id}:${id}::${home}:/bin/sh\n`
  return [
    {
      path: 'etc/passwd',
      content:
        user('root', 0, '/root') +
        user('www-data', 33, '/var/www') +
        user('user-defined-in-image', 1000, '/home/user-defined-in-image') +
        user('nobody', 65534, '/'),
    },
    {
      path: 'etc/group',
      content:
        'root:x:0:\nwww-data:x:33:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnogroup:x:65534:\n',
    },
    { path: 'etc/hosts', content: '127.0.0.1 localhost\n' },
    { path: 'root/', mode: 0o700 },
    { path: 'home/user-defined-in-image/', uid: 1000, gid: 1000 },
    { path: 'tmp/', mode: 0o1777 },
    { path: 'var/tmp/', mode: 0o1777 },
    ...['dev/', 'proc/', 'sys/', 'run/', 'mnt/', 'var/log/', 'usr/bin/', 'usr/sbin/', 'usr/local/bin/'].map((path) => ({
      path,
    })),
  ]
}

const BUSYBOX = '/bin/busybox'

function busybox(): LayerFile[] {
  const applets = execFileSync(BUSYBOX, ['--list'], { encoding: 'utf8' }).trim().split('\n')
  return [
    { path: 'bin/busybox', from: BUSYBOX, mode: 0o755 },
    ...applets
      .filter((name) => name !== 'busybox')
      .map((name) => ({ path: `bin/${name}`, mode: 0o777, link: 'busybox' })),
  ]
}

/** Where glibc's getent looks. */
const NAME_SERVICES = 'passwd: files\ngroup: files\nhosts: files dns\n'

/**
 * Programs that tests run in addition to agnhost: dig, getent, curl, wget, nc, ip, ss, iperf, bash. They take
 * precedence over busybox's.
 */
function agnhostTools({ say }: Tools): LayerFile[] {
  const packages = ['bash', 'bind9-dnsutils', 'curl', 'iperf', 'iproute2', 'libc-bin', 'netcat-openbsd', 'wget']
  const root = unpacked(packages, say)
  const own = [
    'bin/bash',
    'bin/nc.openbsd => usr/bin/nc',
    'bin/ip => usr/bin/ip',
    'bin/ss => usr/bin/ss',
    'usr/bin/curl',
    'usr/bin/dig',
    'usr/bin/getent',
    'usr/bin/iperf',
    'usr/bin/nslookup',
    'usr/bin/wget',
  ]
  return [
    ...busybox().filter(({ path }) => path !== 'bin/wget'),
    ...people(),
    ...filesOf(root, own),
    // Debian builds busybox without the timeout of wget: `wget -T 5`, which tests run, ends with SIGSEGV.
    { path: 'bin/wget', mode: 0o777, link: '/usr/bin/wget' },
    // As busybox's: one try.
    { path: 'etc/wgetrc', content: 'tries = 1\n' },
    // Debian's busybox, as a shell, prefers its own commands to programs in PATH.
    { path: 'bin/sh', mode: 0o777, link: 'bash' },
    // A test reads it in a volume of an image that upstream makes of Alpine.
    {
      path: 'etc/os-release',
      content: 'NAME="Alpine Linux"\nID=alpine\nPRETTY_NAME="Alpine Linux, as far as tests can tell"\n',
    },
    { path: 'etc/nsswitch.conf', content: NAME_SERVICES },
    { path: 'usr/local/bin/iperf', mode: 0o777, link: '/usr/bin/iperf' },
    { path: 'uploads/' },
  ]
}

async function agnhostProgram({ say }: Tools): Promise<LayerFile[]> {
  const { agnhost: program } = await upstreamPrograms(['agnhost'], say)
  const porter = (name: string): LayerFile => ({
    path: name,
    content: readFileSync(upstreamSource(`test/images/agnhost/porter/${name}`)),
  })
  return [
    { path: 'agnhost', from: program, mode: 0o755 },
    { path: 'agnhost-2', mode: 0o777, link: 'agnhost' },
    porter('localhost.crt'),
    porter('localhost.key'),
  ]
}

function picture(name: string): LayerFile[] {
  return [`${name}.jpg`, 'data.json'].map((file) => ({
    path: file,
    content: readFileSync(upstreamSource(`test/images/${name}/html/${file}`)),
  }))
}

function nginx({ say }: Tools): LayerFile[] {
  const root = unpacked(['nginx'], say)
  return [
    ...busybox(),
    ...people(),
    ...filesOf(root, ['usr/sbin/nginx', 'etc/nginx/mime.types', 'usr/share/nginx/html/index.html']),
    { path: 'etc/nginx/nginx.conf', content: NGINX },
    { path: 'var/lib/nginx/' },
    { path: 'var/log/nginx/' },
  ]
}

const NGINX = `user www-data;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {}
http {
  include mime.types;
  access_log /dev/stdout;
  server {
    listen 80;
    root /usr/share/nginx/html;
  }
}
`

function httpd({ say }: Tools): LayerFile[] {
  const root = unpacked(['apache2-bin'], say)
  const modules = ['authz_core', 'dir', 'mime', 'mpm_event'].map((name) => `usr/lib/apache2/modules/mod_${name}.so`)
  return [
    ...busybox(),
    ...people(),
    ...filesOf(root, ['usr/sbin/apache2', ...modules]),
    { path: 'etc/apache2/httpd.conf', content: HTTPD },
    { path: 'etc/mime.types', content: 'text/html html\n' },
    { path: 'var/www/html/index.html', content: '<html><body><h1>It works!</h1></body></html>\n' },
  ]
}

const HTTPD = `ServerName localhost
Listen 80
PidFile /run/httpd.pid
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
TypesConfig /etc/mime.types
User www-data
Group www-data
ErrorLog /proc/self/fd/2
DocumentRoot /var/www/html
DirectoryIndex index.html
<Directory /var/www/html>
  Require all granted
</Directory>
`
