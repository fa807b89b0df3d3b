// An operator as people write them with controller-runtime, and a program that uses its client in every way: what
// test/upstream/controller-runtime.ts runs against a kube-apiserver.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

type settings struct {
	config  *rest.Config
	scheme  *runtime.Scheme
	folder  string
	host    string
	port    int
	isAlone bool
}

func main() {
	// Whose server it is says --kubeconfig, which controller-runtime has declared.
	asked := settings{scheme: runtime.NewScheme()}
	flag.StringVar(&asked.folder, "certificates", "", "the folder of tls.crt, tls.key and ca.crt")
	flag.StringVar(&asked.host, "host", "", "of the webhooks")
	flag.IntVar(&asked.port, "port", 0, "of the webhooks")
	flag.BoolVar(&asked.isAlone, "webhooks-only", false, "without controller")
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		panic(err)
	}
	ctrl.SetLogger(zap.New())
	var err error
	if asked.config, err = ctrl.GetConfig(); err != nil {
		panic(err)
	}
	must(clientgoscheme.AddToScheme(asked.scheme))
	must(addToScheme(asked.scheme))
	must(addExtensions(asked.scheme))
	switch os.Args[1] {
	case "operator":
		must(operate(ctrl.SetupSignalHandler(), asked))
	case "client":
		must(use(ctrl.SetupSignalHandler(), asked))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
